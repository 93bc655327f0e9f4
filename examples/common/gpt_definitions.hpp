// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// What the members of GptStage do. They are compiled once for each type of number, in
/// gpt_float.cpp and gpt_double.cpp: the kernels take a compiler some time.

#include <heddle/device/mirror.hpp>

#include "gpt.hpp"

namespace examples {

template <class Real, class Space>
GptStage<Real, Space>::GptStage(const GptConfig& config, int first, int last, std::uint64_t seed,
                                const heddle::kernel::AdamOptions& optimizer,
                                const execution_space& exec)
    : m_config(checked(config, first, last)),
      m_table(config, first, last),
      m_embeds(first == 0),
      m_predicts(last == config.layers),
      m_exec(exec),
      m_optimizer(optimizer),
      m_parameters(Kokkos::view_alloc(exec, "heddle::gpt::parameters"), m_table.size),
      m_gradients(Kokkos::view_alloc(exec, "heddle::gpt::gradients"), m_table.size),
      m_mean(Kokkos::view_alloc(exec, "heddle::gpt::mean"), m_table.size),
      m_square(Kokkos::view_alloc(exec, "heddle::gpt::square"), m_table.size) {
  const auto shape = this->shape();
  const std::size_t rows = shape.rows(), w = shape.width;
  const std::size_t squares = shape.probability_rows() * shape.context;
  m_scratch = Buffer(Kokkos::view_alloc(exec, Kokkos::WithoutInitializing, "heddle::gpt::scratch"),
                     2 * rows * w + squares + rows);
  Cutter<Real, execution_space> cut(m_scratch.data());
  m_blocks = {exec, shape, {}};
  m_blocks.scratch.first = cut.matrix(rows, w);
  m_blocks.scratch.second = cut.matrix(rows, w);
  m_blocks.scratch.square = cut.matrix(shape.probability_rows(), shape.context);
  m_row_loss = cut.vector(rows);
  for (const GptBlockOffsets& at : m_table.blocks) {
    m_weights.emplace_back(m_parameters.data(), at, w);
    m_weight_grads.emplace_back(m_gradients.data(), at, w);
  }
  m_saved_size = Saved(extent(), nullptr).size;
  m_delta_size = Delta(extent(), nullptr).size;
  start_parameters(seed);
}

template <class Real, class Space>
void GptStage<Real, Space>::begin_step(std::span<const std::uint8_t> tokens, double weight) {
  const std::size_t each = sequences() * (context() + 1);
  heddle::expects(!tokens.empty() && tokens.size() % each == 0, [&] {
    return heddle::Complaint{"GptStage::begin_step", "the tokens are not whole microbatches",
                             heddle::text(tokens.size(), " tokens, a microbatch has ", sequences(),
                                          " x (", context(), " + 1) = ", each)};
  });
  const auto large = std::ranges::find_if(
      tokens, [&](std::uint8_t token) { return token >= m_config.vocabulary; });
  heddle::expects(large == tokens.end(), [&] {
    return heddle::Complaint{"GptStage::begin_step", "a token lies outside the vocabulary",
                             heddle::text("token ", large - tokens.begin(), " is ", int{*large},
                                          ", the vocabulary has ", m_config.vocabulary)};
  });
  const std::size_t microbatches = tokens.size() / each;
  m_weight = weight;
  if (m_tokens.extent(0) != tokens.size()) {
    m_exec.fence("heddle::gpt::begin_step");
    m_tokens =
        Tokens(Kokkos::view_alloc(m_exec, Kokkos::WithoutInitializing, "heddle::gpt::tokens"),
               tokens.size());
    m_losses = Losses(Kokkos::view_alloc(m_exec, "heddle::gpt::losses"), microbatches);
    m_host_losses =
        Kokkos::View<double*, Kokkos::HostSpace>("heddle::gpt::host_losses", microbatches);
  }
  using HostTokens =
      Kokkos::View<const std::uint8_t*, Kokkos::HostSpace, Kokkos::MemoryTraits<Kokkos::Unmanaged>>;
  Kokkos::deep_copy(m_exec, m_tokens, HostTokens(tokens.data(), tokens.size()));
  Kokkos::deep_copy(m_exec, m_losses, 0.0);
  m_exec.fence("heddle::gpt::begin_step");
}

template <class Real, class Space>
void GptStage<Real, Space>::forward(heddle::Item m, const Real* input, Real* output, Real* saved) {
  namespace hk = heddle::kernel;
  expect_started(m);
  const Saved keep(extent(), saved);
  const Matrix stream(m_predicts ? m_blocks.scratch.second.data() : output, rows(), width());
  if (m_embeds) {
    hk::embedding_forward(m_exec, input_tokens(m), token_table(m_parameters.data()),
                          position_table(m_parameters.data()), stream);
  } else {
    Kokkos::deep_copy(m_exec, stream, Input(input, rows(), width()));
  }
  for (std::size_t b = 0; b < m_weights.size(); ++b)
    m_blocks.forward(m_weights[b], stream, keep.block(b));
  if (!m_predicts) return;
  predict(stream, keep);
  hk::cross_entropy_forward(m_exec, targets(m), m_weight, keep.odds, m_row_loss,
                            hk::Vector<double, execution_space>(m_losses.data() + +m, 1));
}

template <class Real, class Space>
void GptStage<Real, Space>::backward_input(heddle::Item m, const Real*, const Real* saved,
                                           const Real* output_grad, Real* input_grad, Real* delta) {
  namespace hk = heddle::kernel;
  expect_started(m);
  const Saved keep(extent(), const_cast<Real*>(saved));  // read only
  const Delta left(extent(), delta);
  if (m_predicts) {
    hk::cross_entropy_backward_input(m_exec, targets(m), m_weight, keep.odds, left.odds);
    hk::linear_backward_input(m_exec, vocabulary_weight(m_parameters.data()), left.odds,
                              left.normed);
    hk::layer_norm_backward_input(m_exec, keep.normalised, keep.inverse,
                                  norm_scale(m_parameters.data()), left.normed, left.top);
  }
  for (std::size_t b = m_weights.size(); b-- > 0;)
    m_blocks.backward_input(m_weights[b], keep.block(b), above(left, b, output_grad), left.block(b),
                            below(left, b, input_grad));
}

template <class Real, class Space>
void GptStage<Real, Space>::backward_weight(heddle::Item m, const Real*, const Real* saved,
                                            const Real* output_grad, const Real* delta) {
  namespace hk = heddle::kernel;
  expect_started(m);
  const Saved keep(extent(), const_cast<Real*>(saved));  // read only, as is delta
  const Delta left(extent(), const_cast<Real*>(delta));
  Real* const grads = m_gradients.data();
  if (m_predicts) {
    const Matrix& normed = m_blocks.scratch.first;
    hk::layer_norm_output(m_exec, keep.normalised, norm_scale(m_parameters.data()),
                          norm_shift(m_parameters.data()), normed);
    hk::linear_backward_weight(m_exec, normed, left.odds, vocabulary_weight(grads),
                               vocabulary_bias(grads));
    hk::layer_norm_backward_weight(m_exec, keep.normalised, left.normed, norm_scale(grads),
                                   norm_shift(grads));
  }
  for (std::size_t b = m_weights.size(); b-- > 0;)
    m_blocks.backward_weight(m_weights[b], keep.block(b), above(left, b, output_grad),
                             left.block(b), m_weight_grads[b]);
  if (m_embeds)
    hk::embedding_backward_weight(m_exec, input_tokens(m), left.bottom, token_table(grads),
                                  position_table(grads));
}

template <class Real, class Space>
void GptStage<Real, Space>::zero_gradients() {
  Kokkos::deep_copy(m_exec, m_gradients, Real(0));
}

template <class Real, class Space>
void GptStage<Real, Space>::update() {
  heddle::kernel::adam_update(m_exec, m_optimizer, ++m_step, m_gradients, m_mean, m_square,
                              m_parameters);
}

template <class Real, class Space>
double GptStage<Real, Space>::loss(heddle::Item m) const {
  expect_started(m);
  Kokkos::deep_copy(m_exec, m_host_losses, m_losses);
  m_exec.fence("heddle::gpt::loss");
  return m_host_losses(+m);
}

template <class Real, class Space>
void GptStage<Real, Space>::predict(const Matrix& stream, const Saved& keep) {
  namespace hk = heddle::kernel;
  Real* const flat = m_parameters.data();
  hk::layer_norm_forward(m_exec, stream, norm_scale(flat), norm_shift(flat), keep.normalised,
                         keep.inverse, m_blocks.scratch.first);
  hk::linear_forward(m_exec, m_blocks.scratch.first, vocabulary_weight(flat), vocabulary_bias(flat),
                     keep.odds);
}

template <class Real, class Space>
void GptStage<Real, Space>::start_parameters(std::uint64_t seed) {
  const auto host = heddle::host_mirror(m_parameters);
  for (const GptTensor& tensor : m_table.tensors) {
    const heddle::Random random(seed, tensor.name);
    for (std::size_t i = 0; i < tensor.size; ++i)
      host(tensor.offset + i) = static_cast<Real>(
          tensor.deviation > 0 ? tensor.deviation * random.normal(i) : tensor.start);
  }
  Kokkos::deep_copy(m_exec, m_parameters, host);
  m_exec.fence("heddle::gpt::start_parameters");
}

template <class Real, class Space>
std::string GptStage<Real, Space>::generate(std::string_view prompt, std::size_t count,
                                            double temperature, std::uint64_t seed) {
  heddle::expects(m_embeds && m_predicts, [&] {
    return heddle::Complaint{"GptStage::generate", "the stage does not hold the whole model",
                             heddle::text(m_weights.size(), " of ", m_config.layers, " blocks"),
                             "gather the parameters into a stage with all blocks"};
  });
  heddle::expects(temperature >= 0, [&] {
    return heddle::Complaint{"GptStage::generate", "the temperature is negative",
                             heddle::text("temperature ", temperature)};
  });
  // The same parameters in a model of one sequence: a token costs one row of sequences, not all.
  GptConfig alone = m_config;
  alone.sequences = 1;
  GptStage model(alone, 0, m_config.layers, 0, {}, m_exec);
  Kokkos::deep_copy(m_exec, model.m_parameters, m_parameters);
  const Buffer saved("heddle::gpt::generate", model.saved_size());
  const Matrix odds = Saved(model.extent(), saved.data()).odds;
  const Kokkos::View<Real*, Kokkos::LayoutRight, Kokkos::HostSpace> row("heddle::gpt::odds",
                                                                        vocabulary());

  std::string text(prompt.empty() ? std::string_view("\n") : prompt);
  const std::size_t start = text.size();
  std::vector<std::uint8_t> tokens(context() + 1);
  std::vector<double> share(vocabulary());
  const heddle::Random random(seed, "sample");
  for (std::size_t i = 0; i < count; ++i) {
    // Attention is causal: whatever stands right of the last token does not reach its odds.
    const std::size_t seen = std::min(text.size(), context());
    std::ranges::fill(tokens, std::uint8_t{0});
    std::ranges::copy(text.end() - static_cast<std::ptrdiff_t>(seen), text.end(), tokens.begin());
    model.begin_step(tokens, 1);
    model.forward(heddle::Item{0}, nullptr, nullptr, saved.data());
    Kokkos::deep_copy(m_exec, row, Kokkos::subview(odds, seen - 1, Kokkos::ALL));
    m_exec.fence("heddle::gpt::generate");

    std::size_t chosen = 0;
    for (std::size_t token = 1; token < vocabulary(); ++token)
      if (row(token) > row(chosen)) chosen = token;
    if (temperature > 0) {
      // p^(1/T) is softmax(logits / T) up to a factor; scaled by the largest, so that it is <= 1.
      const double top = row(chosen);
      double sum = 0;
      for (std::size_t token = 0; token < vocabulary(); ++token)
        sum += share[token] = std::pow(static_cast<double>(row(token)) / top, 1 / temperature);
      double left = random.uniform(i) * sum;
      for (std::size_t token = 0; token < vocabulary(); ++token) {
        if (share[token] == 0) continue;
        chosen = token;
        if ((left -= share[token]) < 0) break;
      }
    }
    text.push_back(static_cast<char>(chosen));
  }
  return text.substr(start);
}

}  // namespace examples
