// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// What the members of GptStage do. They are compiled once for each type of number, in
/// gpt_float.cpp and gpt_double.cpp: the kernels take a compiler some time.

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <heddle/core/text.hpp>
#include <heddle/device/mirror.hpp>

#include "gpt.hpp"
#include "gpt_weights.hpp"

namespace examples {

template <class Real, class Space>
GptStage<Real, Space>::GptStage(const GptConfig& config, int first, int last, std::uint64_t seed,
                                const heddle::kernel::AdamOptions& optimizer,
                                const execution_space& exec, const Line& line,
                                std::shared_ptr<Room> room, const Sequence& sequence,
                                std::vector<GptBlockShape> packed)
    : m_config(checked(config, first, last, sequence)),
      m_range{first, last},
      m_table(config, first, last, part_of(line)),
      m_embeds(first == 0),
      m_predicts(last == config.layers),
      m_exec(exec),
      m_optimizer(optimizer),
      m_shards(m_table.size, exec, std::move(room)),
      m_shapes(packed.empty() ? std::vector{GptBlockShape(config, line, sequence)}
                              : std::move(packed)),
      m_scratch(scratch(exec, m_shapes)),
      m_blocks{exec, line, sequence, m_shapes.front(), cut(m_scratch, m_shapes.front())},
      m_positions(sequence.positions(config.context)) {
  if (sequence.size() > 1) m_table_rows = table_rows(exec, m_positions);
  if (m_predicts) {
    const std::size_t rows = std::ranges::max(m_shapes, {}, &GptBlockShape::all_rows).all_rows();
    m_row_loss = Buffer(
        Kokkos::view_alloc(exec, Kokkos::WithoutInitializing, "heddle::gpt::row_loss"), rows);
    m_row_partials = Partials(
        Kokkos::view_alloc(exec, Kokkos::WithoutInitializing, "heddle::gpt::row_partials"), rows);
  }
  for (const GptBlockOffsets& at : m_table.blocks) {
    m_norm_offsets.push_back(at.norm1_scale);
    m_norm_offsets.push_back(at.norm2_scale);
  }
  if (m_predicts) m_norm_offsets.push_back(m_table.norm_scale);
  if (m_blocks.shape.sharded)
    m_norms =
        Buffer(Kokkos::view_alloc(exec, "heddle::gpt::norms"), m_norm_offsets.size() * 2 * width());
  for (const GptBlockShape& shape : m_shapes) {
    m_activation_size = std::max(m_activation_size, shape.rows * shape.width);
    m_saved_size = std::max(m_saved_size, Saved(extent(shape), nullptr).size);
    m_delta_size = std::max(m_delta_size, Delta(extent(shape), nullptr).size);
  }
  if (m_predicts && m_config.tied)
    m_head = Buffer(Kokkos::view_alloc(exec, Kokkos::WithoutInitializing, "heddle::gpt::head"),
                    width() * classes().count);
  start_parameters(seed);
}

template <class Real, class Space>
auto GptStage<Real, Space>::scratch(const execution_space& exec,
                                    const std::vector<GptBlockShape>& shapes) -> Buffer {
  std::size_t size = 0;
  for (const GptBlockShape& shape : shapes) {
    Cutter<Real, execution_space> counted(nullptr);
    (void)GptScratch<Real, execution_space>(counted, shape);
    size = std::max(size, counted.size());
  }
  return Buffer(Kokkos::view_alloc(exec, Kokkos::WithoutInitializing, "heddle::gpt::scratch"),
                size);
}

template <class Real, class Space>
auto GptStage<Real, Space>::table_rows(const execution_space& exec,
                                       const heddle::IndexSet& positions) -> Positions {
  const Positions rows(Kokkos::view_alloc(exec, "heddle::gpt::table_rows"),
                       static_cast<std::size_t>(positions.size()));
  const auto host = heddle::host_mirror(rows);
  std::size_t next = 0;
  for (const heddle::Interval& each : positions.intervals())
    for (std::int64_t at = each.begin; at < each.end; ++at)
      host(next++) = static_cast<std::size_t>(at);
  Kokkos::deep_copy(exec, rows, host);
  exec.fence("heddle::gpt::table_rows");
  return rows;
}

template <class Real, class Space>
std::vector<std::uint8_t> GptStage<Real, Space>::own_tokens(
    std::span<const std::uint8_t> all) const {
  std::vector<std::uint8_t> own;
  for (auto from = all.begin(); from != all.end(); from += m_config.context + 1)
    for (const int shift : {0, 1})
      for (const heddle::Interval& each : m_positions.intervals())
        own.insert(own.end(), from + shift + each.begin, from + shift + each.end);
  return own;
}

template <class Real, class Space>
void GptStage<Real, Space>::begin_step(std::span<const std::uint8_t> tokens, double weight,
                                       std::span<const std::int64_t> sequences_of_each) {
  const std::size_t of_sequence = context() + 1, each = sequences() * of_sequence;
  const std::size_t whole =
      sequences_of_each.empty() ? tokens.size() / each : sequences_of_each.size();
  const auto large = std::ranges::find_if(sequences_of_each, [&](std::int64_t count) {
    return count < 1 || static_cast<std::size_t>(count) > sequences();
  });
  heddle::expects(large == sequences_of_each.end(), [&] {
    return heddle::ErrorInfo{"GptStage::begin_step", "a microbatch has too many or no sequences",
                             heddle::text("microbatch ", large - sequences_of_each.begin(), " has ",
                                          *large, ", expected 1 to ", sequences())};
  });
  std::vector<std::size_t> first_sequence{0};
  for (std::size_t m = 0; m < whole; ++m)
    first_sequence.push_back(
        first_sequence.back() +
        (sequences_of_each.empty() ? sequences() : static_cast<std::size_t>(sequences_of_each[m])));
  heddle::expects(!tokens.empty() && tokens.size() == first_sequence.back() * of_sequence, [&] {
    return heddle::ErrorInfo{
        "GptStage::begin_step", "the tokens are not whole microbatches",
        heddle::text(tokens.size(), " tokens, a microbatch has ",
                     sequences_of_each.empty() ? "" : "at most ", sequences(), " x (", context(),
                     " + 1) = ", each),
        heddle::text("without numbers of sequences, all microbatches have one size: begin a step "
                     "with ",
                     whole > 0 ? heddle::text(whole * each, " or ") : "", (whole + 1) * each,
                     " tokens")};
  });
  expect_tokens(tokens);
  // The part of the loss that is the mean over this rank's rows.
  m_whole_weight = weight * (static_cast<double>(positions()) / static_cast<double>(context()));
  m_first_sequence = std::move(first_sequence);
  m_packed.clear();
  copy_tokens(own_tokens(tokens), whole);
}

template <class Real, class Space>
void GptStage<Real, Space>::shape_for(std::size_t sequences) {
  m_weight = sequences == this->sequences() ? m_whole_weight
                                            : m_whole_weight * static_cast<double>(sequences) /
                                                  static_cast<double>(this->sequences());
  if (m_blocks.shape.attention.sequences == sequences) return;
  GptConfig config = m_config;
  config.sequences = static_cast<int>(sequences);
  m_blocks.shape = {config, m_blocks.line, m_blocks.sequence};
  m_blocks.scratch = cut(m_scratch, m_blocks.shape);
  // The memory of a call is that part of the memory of a whole microbatch.
  const std::size_t all = this->sequences();
  heddle::expects(rows() * all <= m_activation_size / width() * sequences &&
                      Saved(extent(), nullptr).size * all <= m_saved_size * sequences &&
                      Delta(extent(), nullptr).size * all <= m_delta_size * sequences,
                  [&] {
                    return heddle::ErrorInfo{
                        "GptStage", "the ranks that divide a layer do not divide each sequence",
                        heddle::text(m_blocks.line.size(), " ranks, ", positions(), " positions"),
                        "use a context that the ranks divide, or microbatches of equal sizes"};
                  });
}

template <class Real, class Space>
void GptStage<Real, Space>::begin_step(
    std::span<const GptPacked<Real, execution_space>> microbatches) {
  m_packed.assign(microbatches.begin(), microbatches.end());
  m_packed_tokens.clear();
  std::vector<std::uint8_t> tokens;
  std::vector<std::size_t> table_rows;
  for (const auto& each : m_packed) {
    expect_tokens(each.tokens);
    m_packed_tokens.push_back({tokens.size(), table_rows.size()});
    tokens.insert(tokens.end(), each.tokens.begin(), each.tokens.end());
    table_rows.insert(table_rows.end(), each.table_rows.begin(), each.table_rows.end());
  }
  m_exec.fence("heddle::gpt::begin_step");
  m_packed_rows =
      Positions(Kokkos::view_alloc(m_exec, Kokkos::WithoutInitializing, "heddle::gpt::packed_rows"),
                table_rows.size());
  using HostRows =
      Kokkos::View<const std::size_t*, Kokkos::HostSpace, Kokkos::MemoryTraits<Kokkos::Unmanaged>>;
  Kokkos::deep_copy(m_exec, m_packed_rows, HostRows(table_rows.data(), table_rows.size()));
  copy_tokens(tokens, m_packed.size());
  m_kept.assign(m_packed.size(), nullptr);
  const std::size_t sums = m_table.blocks.size() * sequences() * context() * 2 *
                           m_blocks.shape.attention.heads.kv_columns();
  if (!m_packed.empty() && m_packed.front().slices > 0 && m_key_grads.size() < sums)
    m_key_grads = Buffer(
        Kokkos::view_alloc(m_exec, Kokkos::WithoutInitializing, "heddle::gpt::key_grads"), sums);
}

template <class Real, class Space>
void GptStage<Real, Space>::expect_tokens(std::span<const std::uint8_t> tokens) const {
  const auto large = std::ranges::find_if(
      tokens, [&](std::uint8_t token) { return token >= m_config.vocabulary; });
  heddle::expects(large == tokens.end(), [&] {
    return heddle::ErrorInfo{"GptStage::begin_step", "a token lies outside the vocabulary",
                             heddle::text("token ", large - tokens.begin(), " is ", int{*large},
                                          ", the vocabulary has ", m_config.vocabulary)};
  });
}

template <class Real, class Space>
void GptStage<Real, Space>::copy_tokens(const std::vector<std::uint8_t>& own,
                                        std::size_t microbatches) {
  if (m_tokens.extent(0) != own.size() || m_losses.extent(0) != microbatches) {
    m_exec.fence("heddle::gpt::begin_step");
    m_tokens = Tokens(
        Kokkos::view_alloc(m_exec, Kokkos::WithoutInitializing, "heddle::gpt::tokens"), own.size());
    m_losses = Losses(Kokkos::view_alloc(m_exec, "heddle::gpt::losses"), microbatches);
    m_host_losses =
        Kokkos::View<double*, Kokkos::HostSpace>("heddle::gpt::host_losses", microbatches);
  }
  using HostTokens =
      Kokkos::View<const std::uint8_t*, Kokkos::HostSpace, Kokkos::MemoryTraits<Kokkos::Unmanaged>>;
  Kokkos::deep_copy(m_exec, m_tokens, HostTokens(own.data(), own.size()));
  Kokkos::deep_copy(m_exec, m_losses, 0.0);
  m_exec.fence("heddle::gpt::begin_step");
}

template <class Real, class Space>
void GptStage<Real, Space>::begin(heddle::Item m, std::size_t samples) {
  expect_started(m);
  m_blocks.slices = nullptr;
  if (m_packed.empty()) {
    const std::size_t count = m_first_sequence[+m + 1] - m_first_sequence[+m];
    // Between layers that ranks divide, each of them may have a part of the samples.
    heddle::expects(
        samples == 0 || samples == count || samples * m_blocks.line.size() == count, [&] {
          return heddle::ErrorInfo{
              "GptStage", "the schedule has another number of samples than the step",
              heddle::text("microbatch ", m, ": ", samples, " samples in the schedule, ", count,
                           " sequences in the step"),
              "give begin_step() the sequences of each microbatch"};
        });
    return shape_for(count);
  }
  const auto& packed = m_packed[+m];
  m_blocks.sequence = packed.line;
  m_blocks.shape = packed.shape;
  m_blocks.scratch = cut(m_scratch, packed.shape);
  const std::size_t first = m_packed_tokens[+m].row_begin;
  m_table_rows = Kokkos::subview(m_packed_rows, std::pair(first, first + packed.table_rows.size()));
  m_weight = packed.weight;
  if (packed.slices > 0) m_blocks.slices = &m_slices;
}

template <class Real, class Space>
void GptStage<Real, Space>::attend_to(heddle::Item m, std::size_t b) {
  if (m_blocks.slices == nullptr) return;
  m_slices.visible.clear();
  const std::size_t columns = 2 * m_blocks.shape.attention.heads.kv_columns();
  for (std::size_t each = +m - +m % m_packed[+m].slices; each <= +m; ++each) {
    const GptBlockShape& shape = m_packed[each].shape;
    const std::size_t first = m_packed[each].table_rows.front();
    heddle::expects(m_kept[each] != nullptr, [&] {
      return heddle::ErrorInfo{"GptStage", "an earlier slice of the sequence has not been computed",
                               heddle::text("microbatch ", m, " attends to microbatch ", each),
                               "make the schedule with heddle::schedule::link_slices()"};
    });
    m_slices.visible.push_back(
        {Saved(extent(shape), m_kept[each]).block(b).qkv,
         Matrix(m_key_grads.data() + (b * context() + first) * sequences() * columns,
                shape.all_rows(), columns),
         static_cast<std::int64_t>(first)});
  }
}

template <class Real, class Space>
void GptStage<Real, Space>::begin_key_gradients(heddle::Item m) {
  if (m_blocks.slices == nullptr) return;
  const std::size_t slices = m_packed[+m].slices;
  if (+m % slices + 1 == slices) {
    Kokkos::deep_copy(m_exec, m_key_grads, Real(0));
  } else {
    heddle::expects(m_summed == +m + 1, [&] {
      return heddle::ErrorInfo{
          "GptStage", "the backward pass of a slice does not follow that of the next slice",
          heddle::text("microbatch ", m, " follows microbatch ", m_summed),
          "make the schedule with heddle::schedule::link_slices()"};
    });
  }
  m_summed = +m;
}

template <class Real, class Space>
void GptStage<Real, Space>::forward(const heddle::ForwardCall<Real>& call) {
  begin(call.item, call.samples);
  Real* const flat = m_shards.forward_weights(m_exec);
  if (idle()) return;
  const Saved keep(extent(), call.saved);
  const Matrix stream(m_predicts ? m_blocks.scratch.second.data() : call.output, rows(), width());
  if (m_embeds) {
    if (positions() > 0)
      heddle::vocabulary_embedding_forward(m_blocks.line, m_exec, input_tokens(call.item),
                                           classes(), token_table(flat), position_table(flat),
                                           m_blocks.scratch.all, stream, m_table_rows);
  } else {
    Kokkos::deep_copy(m_exec, stream, Input(call.input, rows(), width()));
  }
  if (m_blocks.slices != nullptr) m_kept[+call.item] = call.saved;
  for (std::size_t b = 0; b < m_table.blocks.size(); ++b) {
    attend_to(call.item, b);
    m_blocks.forward(block(flat, b), stream, keep.block(b));
  }
  if (!m_predicts) return;
  predict(flat, stream, keep);
  const std::pair<std::size_t, std::size_t> own_rows(0, m_blocks.shape.all_rows());
  heddle::vocabulary_cross_entropy_forward(
      m_blocks.line, m_exec, targets(call.item), classes(), m_weight, keep.odds,
      Kokkos::subview(m_row_partials, own_rows), Kokkos::subview(m_row_loss, own_rows),
      heddle::kernel::Vector<double, execution_space>(m_losses.data() + +call.item, 1));
}

template <class Real, class Space>
void GptStage<Real, Space>::backward_input(const heddle::BackwardCall<Real>& call) {
  namespace hk = heddle::kernel;
  begin(call.item, call.samples);
  const Saved keep(extent(), const_cast<Real*>(call.saved));  // read only
  const Delta left(extent(), call.delta);
  Real* const flat = m_shards.backward_weights(m_exec);
  if (idle()) return;
  if (m_predicts) {
    heddle::vocabulary_cross_entropy_backward_input(m_blocks.line, m_exec, targets(call.item),
                                                    classes(), m_weight, keep.odds, left.odds);
    heddle::column_parallel_backward_input(m_blocks.line, m_exec, head_weight(flat), left.odds,
                                           m_blocks.scratch.all, left.normed);
    hk::layer_norm_backward_input(m_exec, keep.normalised, keep.inverse, norm_scale(flat),
                                  left.normed, left.top);
  }
  begin_key_gradients(call.item);
  for (std::size_t b = m_table.blocks.size(); b-- > 0;) {
    attend_to(call.item, b);
    m_blocks.backward_input(block(flat, b), keep.block(b), above(left, b, call.output_grad),
                            left.block(b), below(left, b, call.input_grad));
  }
}

template <class Real, class Space>
void GptStage<Real, Space>::backward_weight(const heddle::BackwardCall<Real>& call) {
  namespace hk = heddle::kernel;
  begin(call.item, call.samples);
  const Saved keep(extent(), const_cast<Real*>(call.saved));  // read only, as is delta
  const Delta left(extent(), const_cast<Real*>(call.delta));
  Real* const flat = m_shards.last_weights(m_exec);
  Real* const grads = m_shards.begin_gradients(m_exec);
  if (idle()) return m_shards.add(m_exec);
  if (m_blocks.shape.sharded) Kokkos::deep_copy(m_exec, m_norms, Real(0));
  if (m_predicts) {
    const Matrix& normed = m_blocks.scratch.first;
    hk::layer_norm_output(m_exec, keep.normalised, norm_scale(flat), norm_shift(flat), normed);
    heddle::column_parallel_backward_weight(m_blocks.line, m_exec, normed, m_blocks.scratch.all,
                                            left.odds, begin_head_gradient(grads),
                                            vocabulary_bias(grads));
    add_head_gradient(grads);
    Real* const norm = norm_gradients(grads, norm_offsets().size() - 1);
    hk::layer_norm_backward_weight(m_exec, keep.normalised, left.normed, Vector(norm, width()),
                                   Vector(norm + width(), width()));
  }
  for (std::size_t b = m_table.blocks.size(); b-- > 0;)
    m_blocks.backward_weight(block(flat, b), keep.block(b), above(left, b, call.output_grad),
                             left.block(b), block_gradients(grads, b));
  if (m_embeds && positions() > 0)
    heddle::vocabulary_embedding_backward_weight(
        m_blocks.line, m_exec, input_tokens(call.item), classes(), left.bottom,
        m_blocks.scratch.all, token_table(grads), position_table(grads), m_table_rows);
  add_norms(grads);
  m_shards.add(m_exec);
}

template <class Real, class Space>
void GptStage<Real, Space>::zero_gradients() {
  m_shards.zero_gradients(m_exec);
}

template <class Real, class Space>
void GptStage<Real, Space>::add_norms(Real* gradients) {
  if (!m_blocks.shape.sharded) return;
  m_blocks.line.sum_over_rows(m_exec, m_norms);
  for (std::size_t i = 0; i < norm_offsets().size(); ++i)
    heddle::kernel::residual_add(m_exec, Matrix(m_norms.data() + i * 2 * width(), 1, 2 * width()),
                                 Matrix(gradients + norm_offsets()[i], 1, 2 * width()));
}

template <class Real, class Space>
void GptStage<Real, Space>::update() {
  m_shards.update(m_exec, m_optimizer);
}

template <class Real, class Space>
double GptStage<Real, Space>::loss(heddle::Item m) const {
  expect_started(m);
  Kokkos::deep_copy(m_exec, m_host_losses, m_losses);
  m_exec.fence("heddle::gpt::loss");
  return m_blocks.line.leads() ? m_host_losses(+m) : 0;
}

template <class Real, class Space>
void GptStage<Real, Space>::predict(Real* flat, const Matrix& stream, const Saved& keep) {
  namespace hk = heddle::kernel;
  hk::layer_norm_forward(m_exec, stream, norm_scale(flat), norm_shift(flat), keep.normalised,
                         keep.inverse, m_blocks.scratch.first);
  heddle::column_parallel_forward(m_blocks.line, m_exec, m_blocks.scratch.first,
                                  m_blocks.scratch.all, head_weight(flat), vocabulary_bias(flat),
                                  keep.odds);
}

template <class Real, class Space>
auto GptStage<Real, Space>::head_weight(Real* flat) -> Matrix {
  if (!m_config.tied) return vocabulary_weight(flat);
  const std::size_t count = classes().count;
  Kokkos::parallel_for(
      "heddle::gpt::head_weight", Kokkos::RangePolicy<execution_space>(m_exec, 0, count * width()),
      GptTranspose<Real>{flat + m_table.vocabulary_weight, m_head.data(), width(), count, false});
  return Matrix(m_head.data(), width(), count);
}

template <class Real, class Space>
auto GptStage<Real, Space>::begin_head_gradient(Real* grads) -> Matrix {
  if (!m_config.tied) return vocabulary_weight(grads);
  Kokkos::deep_copy(m_exec, m_head, Real(0));
  return Matrix(m_head.data(), width(), classes().count);
}

template <class Real, class Space>
void GptStage<Real, Space>::add_head_gradient(Real* grads) {
  if (!m_config.tied) return;
  const std::size_t count = classes().count;
  Kokkos::parallel_for(
      "heddle::gpt::head_gradient",
      Kokkos::RangePolicy<execution_space>(m_exec, 0, count * width()),
      GptTranspose<Real>{m_head.data(), grads + m_table.vocabulary_weight, count, width(), true});
}

template <class Real, class Space>
void GptStage<Real, Space>::start_parameters(std::uint64_t seed) {
  const heddle::Share own = owned();
  const Buffer mine(m_shards.weights(), own.count);  // not ours to free
  const auto host = heddle::host_mirror(mine);
  for (const GptTensor& tensor : m_table.tensors) {
    const heddle::Random random(seed, tensor.origin());
    const std::size_t end = std::min(tensor.offset + tensor.size, own.end());
    for (std::size_t at = std::max(tensor.offset, own.first); at < end; ++at)
      host(at - own.first) =
          first_value<Real>(tensor, random, tensor.slice.in_whole(at - tensor.offset));
  }
  Kokkos::deep_copy(m_exec, mine, host);
  m_shards.started(m_exec);
  m_exec.fence("heddle::gpt::start_parameters");
}

template <class Real, class Space>
std::string GptStage<Real, Space>::generate(std::string_view prompt, std::size_t count,
                                            const GptSampling& sampling, std::uint32_t request) {
  heddle::expects(m_embeds && m_predicts && part().ranks == 1 && owned().count == m_table.size,
                  [&] {
                    return heddle::ErrorInfo{
                        "GptStage::generate", "the stage does not hold the whole model",
                        heddle::text(m_table.blocks.size(), " of ", m_config.layers, " blocks, ",
                                     owned().count, " of their ", m_table.size,
                                     " parameters, divided between ", part().ranks, " ranks"),
                        "gather the parameters into a stage with all blocks"};
                  });
  GptSampler sampler(sampling, vocabulary());
  // The same parameters in a model of one sequence: a token costs one row of sequences, not all.
  GptConfig alone = m_config;
  alone.sequences = 1;
  GptStage model(alone, 0, m_config.layers, 0, {}, m_exec);
  using Flat = heddle::kernel::Vector<Real, execution_space>;
  Kokkos::deep_copy(m_exec, Flat(model.parameters(), m_table.size),
                    Flat(parameters(), m_table.size));
  const Buffer saved("heddle::gpt::generate", model.saved_size());
  const Matrix odds = Saved(model.extent(), saved.data()).odds;
  const Kokkos::View<Real*, Kokkos::LayoutRight, Kokkos::HostSpace> row("heddle::gpt::odds",
                                                                        vocabulary());

  std::string text(prompt.empty() ? std::string_view("\n") : prompt);
  const std::size_t start = text.size();
  std::vector<std::uint8_t> tokens(context() + 1);
  std::vector<Real> logits(vocabulary());
  for (std::size_t i = 0; i < count; ++i) {
    // Attention is causal: whatever stands right of the last token does not reach its odds.
    const std::size_t seen = std::min(text.size(), context());
    std::ranges::fill(tokens, std::uint8_t{0});
    std::ranges::copy(text.end() - static_cast<std::ptrdiff_t>(seen), text.end(), tokens.begin());
    model.begin_step(tokens, 1);
    model.forward({.item = heddle::Item{0}, .saved = saved.data()});
    Kokkos::deep_copy(m_exec, row, Kokkos::subview(odds, seen - 1, Kokkos::ALL));
    m_exec.fence("heddle::gpt::generate");

    // Logits up to a constant, which the sampler does not see.
    for (std::size_t token = 0; token < vocabulary(); ++token) logits[token] = std::log(row(token));
    const std::uint8_t drawn =
        sampler.draw(std::span<const Real>(logits), request, static_cast<std::uint32_t>(i));
    text.push_back(static_cast<char>(drawn));
  }
  return text.substr(start);
}

template <class Real, class Space>
double GptStage<Real, Space>::seconds_of_product(const heddle::kernel::AttentionHeads& heads,
                                                 std::int64_t context) {
  const Sequence line;
  const heddle::SequenceShape shape{1, std::min<std::int64_t>(context, 256), heads};
  const std::size_t rows = line.rows(shape), columns = heads.query_columns();
  const std::size_t inputs = rows * shape.qkv_columns(), outputs = rows * columns;
  const Buffer memory("heddle::gpt::product", inputs + outputs + line.saved_size(shape));
  const execution_space exec;
  double best = std::numeric_limits<double>::infinity();
  for (int pass = 0; pass < 5; ++pass) {
    exec.fence("heddle::gpt::product");
    const Kokkos::Timer timer;
    heddle::sequence_attention_forward(
        line, exec, shape, Matrix(memory.data(), rows, shape.qkv_columns()),
        Vector(memory.data() + inputs + outputs, line.saved_size(shape)),
        Matrix(memory.data() + inputs, rows, columns));
    exec.fence("heddle::gpt::product");
    best = std::min(best, timer.seconds());
  }
  const auto tokens = static_cast<double>(shape.context);
  return best / (tokens * (tokens + 1));
}

}  // namespace examples
