// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// A stage of a byte-level GPT for pipelines: some of the transformer blocks, with the embedding
/// where the first block is, and with the final norm, the vocabulary and the loss where the last
/// is. What the backward calls need travels in the caller's `saved` and `delta` buffers, so that
/// any number of microbatches may be in flight. The calls queue kernels and return; `fence` waits.

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <Kokkos_Core.hpp>

#include <heddle/core/contract.hpp>
#include <heddle/core/index.hpp>
#include <heddle/core/random.hpp>
#include <heddle/core/text.hpp>
#include <heddle/kernel.hpp>

#include "gpt_block.hpp"
#include "gpt_buffers.hpp"
#include "gpt_config.hpp"

namespace examples {

template <class Real, class Space = Kokkos::DefaultExecutionSpace>
class GptStage {
 public:
  using scalar_type = Real;
  using execution_space = typename Space::execution_space;
  using memory_space = typename execution_space::memory_space;

  /// Blocks [first, last) of the model. Parameters start as f(seed, name, index): the same
  /// whichever stage holds them.
  GptStage(const GptConfig& config, int first, int last, std::uint64_t seed = 1,
           const heddle::kernel::AdamOptions& optimizer = {}, const execution_space& exec = {})
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
    m_scratch =
        Buffer(Kokkos::view_alloc(exec, Kokkos::WithoutInitializing, "heddle::gpt::scratch"),
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

  // The stage owns its parameters: a copy would share them.
  GptStage(GptStage&&) = default;
  GptStage& operator=(GptStage&&) = default;

  [[nodiscard]] const GptConfig& config() const { return m_config; }
  [[nodiscard]] bool embeds() const { return m_embeds; }
  [[nodiscard]] bool predicts() const { return m_predicts; }

  // Sizes are in elements, per microbatch.
  [[nodiscard]] std::size_t input_size() const { return m_embeds ? 0 : activation_size(); }
  [[nodiscard]] std::size_t output_size() const { return m_predicts ? 0 : activation_size(); }
  [[nodiscard]] std::size_t saved_size() const { return m_saved_size; }
  [[nodiscard]] std::size_t delta_size() const { return m_delta_size; }
  [[nodiscard]] std::size_t parameter_count() const { return m_table.size; }
  [[nodiscard]] Real* parameters() { return m_parameters.data(); }
  [[nodiscard]] Real* gradients() { return m_gradients.data(); }
  /// The names and places of the parameters, and of the gradients likewise.
  [[nodiscard]] const std::vector<GptTensor>& tensors() const { return m_table.tensors; }
  /// May be changed between steps.
  [[nodiscard]] heddle::kernel::AdamOptions& optimizer() { return m_optimizer; }

  /// Takes the tokens of the whole local batch, microbatches x sequences x (context + 1), and the
  /// weight of each microbatch's loss: 1 / (microbatches over all replicas) makes the losses' sum
  /// the mean. The tokens are copied before this returns.
  void begin_step(std::span<const std::uint8_t> tokens, double weight) {
    const std::size_t each = sequences() * (context() + 1);
    heddle::expects(!tokens.empty() && tokens.size() % each == 0, [&] {
      return heddle::Complaint{"GptStage::begin_step", "the tokens are not whole microbatches",
                               heddle::text(tokens.size(), " tokens, a microbatch has ",
                                            sequences(), " x (", context(), " + 1) = ", each)};
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
    using HostTokens = Kokkos::View<const std::uint8_t*, Kokkos::HostSpace,
                                    Kokkos::MemoryTraits<Kokkos::Unmanaged>>;
    Kokkos::deep_copy(m_exec, m_tokens, HostTokens(tokens.data(), tokens.size()));
    Kokkos::deep_copy(m_exec, m_losses, 0.0);
    m_exec.fence("heddle::gpt::begin_step");
  }

  void forward(heddle::Item m, const Real* input, Real* output, Real* saved) {
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

  void backward_input(heddle::Item m, const Real*, const Real* saved, const Real* output_grad,
                      Real* input_grad, Real* delta) {
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
      m_blocks.backward_input(m_weights[b], keep.block(b), above(left, b, output_grad),
                              left.block(b), below(left, b, input_grad));
  }

  /// Adds to gradients().
  void backward_weight(heddle::Item m, const Real*, const Real* saved, const Real* output_grad,
                       const Real* delta) {
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

  void zero_gradients() { Kokkos::deep_copy(m_exec, m_gradients, Real(0)); }

  /// One step of Adam with the gradients as they are.
  void update() {
    heddle::kernel::adam_update(m_exec, m_optimizer, ++m_step, m_gradients, m_mean, m_square,
                                m_parameters);
  }

  void fence() { m_exec.fence("heddle::gpt::fence"); }

  /// The weighted loss of one microbatch of this step, 0 where it has not run forward or on a stage
  /// that does not predict. Waits for the queued kernels.
  [[nodiscard]] double loss(heddle::Item m) const {
    expect_started(m);
    Kokkos::deep_copy(m_exec, m_host_losses, m_losses);
    m_exec.fence("heddle::gpt::loss");
    return m_host_losses(+m);
  }

  /// `count` tokens that continue `prompt`, drawn with f(seed, "sample", index) from the odds at
  /// `temperature` (0: the likeliest). Needs all blocks. An empty prompt stands for one newline; of
  /// a longer text the last `context` tokens are seen.
  [[nodiscard]] std::string generate(std::string_view prompt, std::size_t count, double temperature,
                                     std::uint64_t seed);

 private:
  using Matrix = heddle::kernel::Matrix<Real, execution_space>;
  using Vector = heddle::kernel::Vector<Real, execution_space>;
  using Input = heddle::kernel::Matrix<const Real, execution_space>;
  using Buffer = Kokkos::View<Real*, memory_space>;
  using Tokens = Kokkos::View<std::uint8_t*, memory_space>;
  using Losses = Kokkos::View<double*, memory_space>;
  using TokenMatrix = heddle::kernel::Matrix<const std::uint8_t, execution_space>;
  using Block = GptBlock<Real, execution_space>;
  using Saved = GptSaved<Real, execution_space>;
  using Delta = GptDelta<Real, execution_space>;

  static const GptConfig& checked(const GptConfig& config, int first, int last) {
    validate(config);
    heddle::expects(0 <= first && first < last && last <= config.layers, [&] {
      return heddle::Complaint{"GptStage", "there is no such range of blocks",
                               heddle::text("blocks [", first, ", ", last, ") of ", config.layers),
                               "a stage holds at least one block: use no more stages than layers"};
    });
    return config;
  }

  [[nodiscard]] std::size_t sequences() const {
    return static_cast<std::size_t>(m_config.sequences);
  }
  [[nodiscard]] std::size_t context() const { return static_cast<std::size_t>(m_config.context); }
  [[nodiscard]] std::size_t width() const { return static_cast<std::size_t>(m_config.width); }
  [[nodiscard]] std::size_t vocabulary() const {
    return static_cast<std::size_t>(m_config.vocabulary);
  }
  [[nodiscard]] std::size_t rows() const { return sequences() * context(); }
  [[nodiscard]] std::size_t activation_size() const { return rows() * width(); }
  [[nodiscard]] heddle::kernel::AttentionShape shape() const {
    return {sequences(), context(), static_cast<std::size_t>(m_config.heads), width()};
  }

  [[nodiscard]] GptExtent extent() const {
    return {shape(), vocabulary(), m_table.blocks.size(), m_embeds, m_predicts};
  }

  void expect_started(heddle::Item m) const {
    heddle::expects(+m < m_losses.extent(0), [&] {
      return heddle::Complaint{"GptStage", "this step has no such microbatch",
                               heddle::text("microbatch ", m, " of ", m_losses.extent(0)),
                               "begin_step takes the tokens of all local microbatches"};
    });
  }

  // Views of the ends' parameters or gradients in a flat vector.
  Matrix token_table(Real* flat) const {
    return Matrix(flat + m_table.token_table, vocabulary(), width());
  }
  Matrix position_table(Real* flat) const {
    return Matrix(flat + m_table.position_table, context(), width());
  }
  Vector norm_scale(Real* flat) const { return Vector(flat + m_table.norm_scale, width()); }
  Vector norm_shift(Real* flat) const { return Vector(flat + m_table.norm_shift, width()); }
  Matrix vocabulary_weight(Real* flat) const {
    return Matrix(flat + m_table.vocabulary_weight, width(), vocabulary());
  }
  Vector vocabulary_bias(Real* flat) const {
    return Vector(flat + m_table.vocabulary_bias, vocabulary());
  }

  /// The tokens that a microbatch reads, and those that it must foretell: one position later.
  TokenMatrix input_tokens(heddle::Item m) const { return tokens(m, 0); }
  TokenMatrix targets(heddle::Item m) const { return tokens(m, 1); }
  TokenMatrix tokens(heddle::Item m, std::size_t shift) const {
    const std::size_t each = sequences() * (context() + 1);
    const TokenMatrix all(m_tokens.data() + +m * each, sequences(), context() + 1);
    return Kokkos::subview(all, Kokkos::ALL, std::pair(shift, shift + context()));
  }

  /// The gradient of block b's output and where that of its input goes.
  Input above(const Delta& delta, std::size_t b, const Real* output_grad) const {
    if (b + 1 < m_weights.size()) return delta.after(b);
    return m_predicts ? Input(delta.top) : Input(output_grad, rows(), width());
  }
  Matrix below(const Delta& delta, std::size_t b, Real* input_grad) const {
    if (b > 0) return delta.after(b - 1);
    return m_embeds ? delta.bottom : Matrix(input_grad, rows(), width());
  }

  /// The head up to the logits, in keep.odds.
  void predict(const Matrix& stream, const Saved& keep) {
    namespace hk = heddle::kernel;
    Real* const flat = m_parameters.data();
    hk::layer_norm_forward(m_exec, stream, norm_scale(flat), norm_shift(flat), keep.normalised,
                           keep.inverse, m_blocks.scratch.first);
    hk::linear_forward(m_exec, m_blocks.scratch.first, vocabulary_weight(flat),
                       vocabulary_bias(flat), keep.odds);
  }

  void start_parameters(std::uint64_t seed) {
    const auto host = Kokkos::create_mirror_view(m_parameters);
    for (const GptTensor& tensor : m_table.tensors) {
      const heddle::Random random(seed, tensor.name);
      for (std::size_t i = 0; i < tensor.size; ++i)
        host(tensor.offset + i) = static_cast<Real>(
            tensor.deviation > 0 ? tensor.deviation * random.normal(i) : tensor.start);
    }
    Kokkos::deep_copy(m_exec, m_parameters, host);
    m_exec.fence("heddle::gpt::start_parameters");
  }

  GptConfig m_config;
  GptTable m_table;
  bool m_embeds, m_predicts;
  execution_space m_exec;
  heddle::kernel::AdamOptions m_optimizer;
  Buffer m_parameters, m_gradients, m_mean, m_square, m_scratch;
  Block m_blocks;
  Vector m_row_loss;
  std::vector<typename Block::Weights> m_weights, m_weight_grads;
  std::size_t m_saved_size = 0, m_delta_size = 0;
  std::uint64_t m_step = 0;
  double m_weight = 0;
  Tokens m_tokens;
  Losses m_losses;
  Kokkos::View<double*, Kokkos::HostSpace> m_host_losses;
};

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
  const auto row = Kokkos::create_mirror(Kokkos::subview(odds, 0, Kokkos::ALL));

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
