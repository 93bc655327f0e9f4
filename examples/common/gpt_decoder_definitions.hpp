// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// The definitions of GptDecoder, which gpt_float.cpp and gpt_double.cpp compile.

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <utility>

#include <heddle/core/contract.hpp>
#include <heddle/core/text.hpp>
#include <heddle/sequence/sequence_line.hpp>

#include "gpt_decoder.hpp"

namespace examples {

template <class Real, class Space>
GptDecoder<Real, Space>::Scratch::Scratch(Cutter<Real, execution_space>& cut,
                                          const GptBlockShape& shape, std::size_t rows)
    : stream(cut.matrix(rows, shape.width)),
      normalised(cut.matrix(rows, shape.width)),
      normed(cut.matrix(rows, shape.width)),
      qkv(cut.matrix(rows, shape.attention.qkv_columns())),
      attended(cut.matrix(rows, shape.columns())),
      hidden(cut.matrix(rows, shape.hidden)),
      picked(cut.matrix(rows, shape.width)),
      inverse(cut.vector(rows)) {}

namespace impl {

/// Returns `config` if the blocks and the line suit it.
template <class Line>
[[nodiscard]] GptConfig decoder_config(const GptConfig& config, int first, int last,
                                       const GptBatchSizes& sizes, const Line& line) {
  validate(config);
  validate(sizes);
  heddle::expects(0 <= first && first < last && last <= config.layers, [&] {
    return heddle::ErrorInfo{"GptDecoder", "there is no such range of blocks",
                             heddle::text("blocks [", first, ", ", last, ") of ", config.layers),
                             "use at most as many stages as layers"};
  });
  heddle::expects(static_cast<int>(sizes.context) == config.context && !line.sharded(), [&] {
    return heddle::ErrorInfo{"GptDecoder", "the batches do not suit the model",
                             heddle::text("context ", sizes.context, ", the model has ",
                                          config.context, line.sharded() ? ", sharded rows" : ""),
                             "take the context of the model, and rows of the form whole"};
  });
  return config;
}

}  // namespace impl

template <class Real, class Space>
GptDecoder<Real, Space>::GptDecoder(const GptConfig& config, int first, int last,
                                    const GptBatchSizes& sizes, std::span<const Real> parameters,
                                    const Line& line, GptWeightsOf weights,
                                    const execution_space& exec)
    : m_config(impl::decoder_config(config, first, last, sizes, line)),
      m_sizes(sizes),
      m_embeds(first == 0),
      m_predicts(last == config.layers),
      m_keeps(weights),
      m_exec(exec),
      m_line(line),
      m_table(config, first, last, {line.size(), line.rank()}),
      m_shape(config, line, heddle::SequenceLine<Real, execution_space>(),
              {1, static_cast<std::int64_t>(sizes.rows), {}, {}}, true),
      m_parameters(
          "heddle::gpt::parameters",
          m_table.size -
              (weights == GptWeightsOf::whole ? 0 : m_table.blocks_end - m_table.half(0).first)),
      m_cache({m_table.blocks.size(), m_shape.attention.heads.kv_columns(), sizes.block,
               sizes.all_blocks(), sizes.slots(), sizes.blocks_of(sizes.context)}),
      m_tokens("heddle::gpt::tokens", sizes.rows),
      m_positions("heddle::gpt::positions", sizes.rows),
      m_picks("heddle::gpt::picks", sizes.requests),
      m_rows("heddle::gpt::rows", sizes.rows),
      m_host_tokens(heddle::host_mirror(m_tokens)),
      m_host_positions(heddle::host_mirror(m_positions)),
      m_host_picks(heddle::host_mirror(m_picks)),
      m_host_rows(heddle::host_mirror(m_rows)) {
  Cutter<Real, execution_space> counted(nullptr);
  (void)Scratch(counted, m_shape, sizes.rows);
  m_scratch = Buffer("heddle::gpt::scratch", counted.size());
  if (m_predicts) {
    const auto vocabulary = static_cast<std::size_t>(config.vocabulary);
    m_logits = Logits("heddle::gpt::logits", sizes.requests, vocabulary);
    if (line.size() > 1)
      m_own_logits =
          Logits("heddle::gpt::own_logits", sizes.requests, line.share(vocabulary).count);
    m_host_logits = heddle::host_mirror(m_logits);
  }
  take_part(parameters, GptTable(config, 0, config.layers));
}

template <class Real, class Space>
void GptDecoder<Real, Space>::take_part(std::span<const Real> parameters, const GptTable& whole) {
  heddle::expects(parameters.size() == whole.size, [&] {
    return heddle::ErrorInfo{"GptDecoder", "these are not the parameters of the whole model",
                             heddle::text(parameters.size(), " values, the model has ", whole.size),
                             "gather the parameters of all stages"};
  });
  const auto host = heddle::host_mirror(m_parameters);
  for_each_owned(m_table, {0, m_table.size}, whole, [&](std::size_t at, std::size_t place) {
    const bool of_block = m_table.half(0).first <= at && at < m_table.blocks_end;
    if (m_keeps == GptWeightsOf::whole || !of_block)
      host(static_cast<std::size_t>(kept(at) - m_parameters.data())) = parameters[place];
  });
  Kokkos::deep_copy(m_exec, m_parameters, host);
  m_exec.fence("heddle::gpt::parameters");
}

template <class Real, class Space>
std::size_t GptDecoder<Real, Space>::begin(std::span<const GptSegment> segments,
                                           std::span<const std::uint8_t> tokens) {
  // What was used until now first, so that the cache never has more than it must.
  for (const GptSegment& segment : segments)
    if (segment.first == 0) m_cache.release(segment.slot);
  std::size_t row = 0;
  m_draws = 0;
  for (const GptSegment& segment : segments) {
    heddle::expects(
        row + segment.rows <= m_sizes.rows && m_draws + segment.draws <= m_sizes.requests &&
            segment.first + segment.rows <= m_sizes.context,
        [&] {
          return heddle::ErrorInfo{"GptDecoder",
                                   "the step has more rows than the decoder was made for",
                                   heddle::text("request ", segment.request, ": ", segment.rows,
                                                " rows from position ", segment.first),
                                   "make the steps with a GptBatcher of the same sizes"};
        });
    m_cache.reserve(segment.slot, segment.first + segment.rows);
    for (std::uint32_t i = 0; i < segment.rows; ++i, ++row) {
      m_host_rows(row) = {segment.slot, segment.first + i};
      m_host_positions(row) = segment.first + i;
    }
    if (segment.draws != 0) m_host_picks(m_draws++) = row - 1;
  }
  if (m_embeds) {
    heddle::expects(
        tokens.size() == row &&
            std::ranges::all_of(tokens,
                                [&](std::uint8_t token) { return token < m_config.vocabulary; }),
        [&] {
          return heddle::ErrorInfo{"GptDecoder", "there is no token of the vocabulary for each row",
                                   heddle::text(tokens.size(), " tokens, ", row,
                                                " rows, vocabulary ", m_config.vocabulary),
                                   "use prompts of bytes below the vocabulary"};
        });
    std::ranges::copy(tokens, m_host_tokens.data());
    Kokkos::deep_copy(m_exec, m_tokens, m_host_tokens);
    Kokkos::deep_copy(m_exec, m_positions, m_host_positions);
  }
  Kokkos::deep_copy(m_exec, m_rows, m_host_rows);
  if (m_predicts) Kokkos::deep_copy(m_exec, m_picks, m_host_picks);
  return row;
}

template <class Real, class Space>
Real* GptDecoder<Real, Space>::kept(std::size_t offset) const {
  const bool behind = m_keeps == GptWeightsOf::ends && offset >= m_table.blocks_end;
  return m_parameters.data() + offset -
         (behind ? m_table.blocks_end - m_table.half(0).first : std::size_t{0});
}

template <class Real, class Space>
auto GptDecoder<Real, Space>::scratch() -> Scratch {
  Cutter<Real, execution_space> cut(m_scratch.data());
  return Scratch(cut, m_shape, m_step_rows);
}

template <class Real, class Space>
auto GptDecoder<Real, Space>::stream(const Scratch& scratch) const -> Matrix {
  return m_predicts ? scratch.stream : Matrix(m_output, m_step_rows, scratch.stream.extent(1));
}

template <class Real, class Space>
void GptDecoder<Real, Space>::begin_step(std::span<const GptSegment> segments,
                                         std::span<const std::uint8_t> tokens, const Real* input,
                                         Real* output) {
  m_step_rows = begin(segments, tokens);
  m_output = output;
  if (m_step_rows == 0) return;
  const Scratch own = scratch();
  const Matrix rows = stream(own);
  if (m_embeds)
    embed(own, rows);
  else
    Kokkos::deep_copy(m_exec, rows, Input(input, m_step_rows, rows.extent(1)));
}

template <class Real, class Space>
void GptDecoder<Real, Space>::compute_half(std::size_t half, Real* weights) {
  if (m_step_rows == 0) return;
  const Scratch own = scratch();
  const Weights views(weights, m_table.in_half(half), m_shape);
  if (half % 2 == 0)
    attention(half / 2, views, own, stream(own));
  else
    mlp(views, own, stream(own));
  m_exec.fence("heddle::gpt::half");
}

template <class Real, class Space>
void GptDecoder<Real, Space>::end_step() {
  if (m_step_rows > 0) {
    const Scratch own = scratch();
    if (m_predicts && m_draws > 0) predict(own, stream(own));
    m_counts.rows += m_step_rows;
  }
  m_exec.fence("heddle::gpt::decode");
}

template <class Real, class Space>
void GptDecoder<Real, Space>::forward(std::span<const GptSegment> segments,
                                      std::span<const std::uint8_t> tokens, const Real* input,
                                      Real* output) {
  heddle::expects(m_keeps == GptWeightsOf::whole, [] {
    return heddle::ErrorInfo{"GptDecoder::forward",
                             "the decoder does not keep its blocks",
                             {},
                             "call compute_half() with the weights of every half"};
  });
  begin_step(segments, tokens, input, output);
  if (m_step_rows > 0) {
    const Scratch own = scratch();
    for (std::size_t b = 0; b < m_table.blocks.size(); ++b) {
      const Weights weights(m_parameters.data(), m_table.blocks[b], m_shape);
      attention(b, weights, own, stream(own));
      mlp(weights, own, stream(own));
    }
  }
  end_step();
}

template <class Real, class Space>
void GptDecoder<Real, Space>::embed(const Scratch& scratch, const Matrix& stream) {
  using Tokens = heddle::kernel::Matrix<const std::uint8_t, execution_space>;
  const std::size_t rows = stream.extent(0), width = stream.extent(1);
  const heddle::Share classes = m_line.share(static_cast<std::size_t>(m_config.vocabulary));
  heddle::vocabulary_embedding_forward(
      m_line, m_exec, Tokens(m_tokens.data(), 1, rows), classes,
      Input(kept(m_table.token_table), classes.count, width),
      Input(kept(m_table.position_table), static_cast<std::size_t>(m_config.context), width),
      scratch.normed, stream,
      heddle::kernel::Vector<const std::size_t, execution_space>(m_positions.data(), rows));
  if (m_line.size() > 1) m_counts.summed += stream.size();
}

template <class Real, class Space>
void GptDecoder<Real, Space>::column_parallel(const Input& input, const Input& weight,
                                              const Vector& bias, const Matrix& output) {
  heddle::column_parallel_forward(m_line, m_exec, input, {}, weight, bias, output);
  m_counts.linear_rows += input.extent(0);
}

template <class Real, class Space>
void GptDecoder<Real, Space>::row_parallel(const Input& input, const Input& weight,
                                           const Vector& bias, const Matrix& output) {
  heddle::row_parallel_forward(m_line, m_exec, input, weight, bias, {}, output);
  m_counts.linear_rows += input.extent(0);
  if (m_line.size() > 1) m_counts.summed += output.size();
}

template <class Real, class Space>
void GptDecoder<Real, Space>::attention(std::size_t b, const Weights& weights,
                                        const Scratch& scratch, const Matrix& stream) {
  namespace hk = heddle::kernel;
  hk::layer_norm_forward(m_exec, stream, weights.scale1, weights.shift1, scratch.normalised,
                         scratch.inverse, scratch.normed);
  column_parallel(scratch.normed, weights.qkv, weights.qkv_bias, scratch.qkv);
  attend(b, scratch);
  row_parallel(scratch.attended, weights.project, weights.project_bias, scratch.normed);
  hk::residual_add(m_exec, scratch.normed, stream);
}

template <class Real, class Space>
void GptDecoder<Real, Space>::mlp(const Weights& weights, const Scratch& scratch,
                                  const Matrix& stream) {
  namespace hk = heddle::kernel;
  hk::layer_norm_forward(m_exec, stream, weights.scale2, weights.shift2, scratch.normalised,
                         scratch.inverse, scratch.normed);
  column_parallel(scratch.normed, weights.expand, weights.expand_bias, scratch.hidden);
  hk::gelu_forward(m_exec, scratch.hidden, scratch.hidden);
  row_parallel(scratch.hidden, weights.contract, weights.contract_bias, scratch.normed);
  hk::residual_add(m_exec, scratch.normed, stream);
}

template <class Real, class Space>
void GptDecoder<Real, Space>::attend(std::size_t b, const Scratch& scratch) {
  using Range = Kokkos::RangePolicy<execution_space>;
  using Rows = heddle::kernel::Vector<const GptRow, execution_space>;
  const auto& heads = m_shape.attention.heads;
  const std::size_t rows = scratch.qkv.extent(0);
  const GptLayerCache<Real, execution_space> cache{m_cache.table(m_exec), heads.kv_columns(),
                                                   m_sizes.block,
                                                   2 * heads.kv_columns() * m_sizes.block * b};
  const Rows places(m_rows.data(), rows);
  Kokkos::parallel_for("heddle::gpt::keep_rows", Range(m_exec, 0, rows * heads.kv_columns()),
                       GptKeepRows<Real, execution_space>{scratch.qkv, places, cache});
  Kokkos::parallel_for(
      "heddle::gpt::cached_attention", Range(m_exec, 0, rows * heads.heads),
      GptCachedAttention<Real, execution_space>{
          scratch.qkv, places, cache, heads.heads, heads.heads / heads.kv_heads, heads.head_width,
          Real(1) / std::sqrt(static_cast<Real>(heads.head_width)), scratch.attended});
}

template <class Real, class Space>
void GptDecoder<Real, Space>::predict(const Scratch& scratch, const Matrix& stream) {
  namespace hk = heddle::kernel;
  using Range = Kokkos::RangePolicy<execution_space>;
  const std::size_t width = stream.extent(1);
  const auto rows_of = [&](const Matrix& all) { return Matrix(all.data(), m_draws, width); };
  const Matrix picked = rows_of(scratch.picked);
  Kokkos::parallel_for(
      "heddle::gpt::pick_rows", Range(m_exec, 0, m_draws * width),
      GptPickRows<Real, execution_space>{
          stream,
          heddle::kernel::Vector<const std::size_t, execution_space>(m_picks.data(), m_draws),
          picked});
  const heddle::Share classes = m_line.share(static_cast<std::size_t>(m_config.vocabulary));
  const Matrix logits(m_logits.data(), m_draws, m_logits.extent(1));
  const Matrix own =
      m_line.size() > 1 ? Matrix(m_own_logits.data(), m_draws, classes.count) : logits;
  hk::layer_norm_forward(m_exec, picked, Vector(kept(m_table.norm_scale), width),
                         Vector(kept(m_table.norm_shift), width), rows_of(scratch.normalised),
                         Vector(scratch.inverse.data(), m_draws), rows_of(scratch.normed));
  heddle::column_parallel_forward(m_line, m_exec, rows_of(scratch.normed), {},
                                  Input(kept(m_table.vocabulary_weight), width, classes.count),
                                  Vector(kept(m_table.vocabulary_bias), classes.count), own);
  if (m_line.size() > 1) {
    Kokkos::parallel_for("heddle::gpt::spread_classes", Range(m_exec, 0, logits.size()),
                         GptSpreadClasses<Real, execution_space>{own, classes, logits});
    m_line.sum(m_exec, {}, logits);
    m_counts.summed += logits.size();
  }
  m_counts.logit_rows += m_draws;
  Kokkos::deep_copy(m_exec, m_host_logits, m_logits);
}

}  // namespace examples
