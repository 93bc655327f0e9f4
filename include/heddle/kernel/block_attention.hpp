// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// Attention of a block of queries over a block of keys and values, both at any positions of a
/// sequence. The block that a call adds need not be the whole sequence: forward continues a state,
/// an output, a maximum and a sum for each query and head, and two states join into one (online
/// softmax, Milakov and Gimelshein, 2018; Dao et al., "FlashAttention", 2022).
///
/// With scores s_ij = q_i . k_j / sqrt(head width) over the keys j that query i sees:
///
///     max_i = max_j s_ij    sum_i = sum_j exp(s_ij - max_i)
///     output_i = sum_j exp(s_ij - max_i) / sum_i v_j
///
/// Backward recomputes the weights from the maximum and the sum, so no row of probabilities is
/// kept. Compare attention.hpp, which keeps all of them.
///
/// Matrices are row-major: a row is a query or a key, and the heads follow one another in its
/// columns. They may be blocks of wider matrices, such as the columns of Q in Q | K | V. Products
/// are made by gemm for each head and tile of scores, so the calls are in the order of `exec` as
/// gemm is, and they allocate nothing.

#include <algorithm>
#include <cmath>
#include <concepts>
#include <cstddef>
#include <type_traits>
#include <utility>

#include <Kokkos_Core.hpp>

#include <heddle/kernel/attention_state.hpp>
#include <heddle/kernel/internal/loops.hpp>
#include <heddle/kernel/internal/rows.hpp>
#include <heddle/kernel/linalg.hpp>
#include <heddle/kernel/vector_math.hpp>
#include <heddle/kernel/view.hpp>
#include <heddle/kernel/visible_keys.hpp>

namespace heddle::inline v0::kernel {

/// The queries, keys and values of a block.
template <std::floating_point Real, ExecutionSpace Exec>
struct AttentionInput {
  Matrix<const Real, Exec> queries;  ///< queries x heads * head width
  Matrix<const Real, Exec> keys;     ///< keys x kv_heads * head width
  Matrix<const Real, Exec> values;   ///< keys x kv_heads * head width
};

/// The gradients of an AttentionInput, in the same shapes.
template <std::floating_point Real, ExecutionSpace Exec>
struct AttentionInputGrad {
  Matrix<Real, Exec> queries;  ///< queries x heads * head width
  Matrix<Real, Exec> keys;     ///< keys x kv_heads * head width
  Matrix<Real, Exec> values;   ///< keys x kv_heads * head width
};

/// The number of queries and of keys whose scores are in scratch at once.
struct AttentionTile {
  std::size_t queries;  ///< rows of a tile
  std::size_t keys;     ///< columns of a tile

  /// Returns the rows of the scratch matrix: 2 * queries, because backward needs the scores of a
  /// tile and their gradients.
  [[nodiscard]] constexpr std::size_t scratch_rows() const { return 2 * queries; }
};

/// The tile that suits an execution space. On the host the tile stays in the cache. On a
/// device it is large, because each tile needs several launches.
template <ExecutionSpace Exec>
inline constexpr AttentionTile attention_tile =
    runs_on_host<Exec> ? AttentionTile{64, 256} : AttentionTile{1024, 1024};

namespace impl {

/// The part of a query's visible keys that lies in a tile, as columns of the tile.
template <ExecutionSpace Exec>
struct TileMask {
  Vector<const KeyRange, Exec> ranges;  // by row of the tile
  std::size_t first_key;                // of column 0

  [[nodiscard]] KOKKOS_FUNCTION KeyRange columns(std::size_t row, std::size_t count) const {
    const KeyRange seen = ranges(row);
    const std::size_t last_key = first_key + count;
    const std::size_t begin = seen.begin > first_key ? seen.begin : first_key;
    const std::size_t end = seen.end < last_key ? seen.end : last_key;
    return begin < end ? KeyRange{begin - first_key, end - first_key} : KeyRange{0, 0};
  }
};

/// Sets a row to zero outside of `range`.
template <class Workers, class Real>
KOKKOS_INLINE_FUNCTION void clear_outside(const Workers& workers, Real* row, const KeyRange& range,
                                          std::size_t count) {
  const std::size_t end = range.end;
  workers.each(range.begin, [=](std::size_t j) { row[j] = 0; });
  workers.each(count - end, [=](std::size_t j) { row[end + j] = 0; });
}

/// Adds the scores of a tile to the sums of its rows, scales the outputs so far by what that leaves
/// of their weight, and replaces the scores by the weights of their values.
template <ExecutionSpace Exec, class Real>
struct ContinueSoftmax {
  Matrix<Real, Exec> scores;
  AttentionState<Real, Exec> state;  // of one head, the rows of the tile
  TileMask<Exec> mask;

  template <class Workers>
  KOKKOS_FUNCTION void operator()(std::size_t row, const Workers& workers) const {
    const std::size_t count = scores.extent(1);
    const KeyRange seen = mask.columns(row, count);
    Real* const all = &scores(row, 0);
    clear_outside(workers, all, seen, count);
    if (seen.empty()) return;
    Real* const p = all + seen.begin;
    const std::size_t keys = seen.end - seen.begin;
    const Real before = state.max(row, 0);
    const Real found = workers.largest(p, keys);
    const Real top = before > found ? before : found;
    workers.each(keys, [=](std::size_t j) { p[j] = vector_exp(p[j] - top); });
    const Real old = vector_exp(before - top) * state.sum(row, 0);  // 0 if it has seen nothing
    const Real sum = old + workers.template sum<Real>(keys, [=](std::size_t j) { return p[j]; });
    const Real share = Real(1) / sum;
    workers.each(keys, [=](std::size_t j) { p[j] *= share; });
    workers.each(state.output.extent(1),
                 [&](std::size_t d) { state.output(row, d) *= old * share; });
    workers.once([&] {
      state.max(row, 0) = top;
      state.sum(row, 0) = sum;
    });
  }
};

/// Replaces the scores of a tile by probabilities P, and the gradients dP of these by dS = P (dP -
/// output . output_grad); both are zero for keys that a row does not see.
template <ExecutionSpace Exec, class Real>
struct RecomputeSoftmax {
  Matrix<Real, Exec> scores;
  Matrix<Real, Exec> grad;
  AttentionState<const Real, Exec> state;  // of one head, the rows of the tile
  Matrix<const Real, Exec> output_grad;    // likewise
  TileMask<Exec> mask;

  template <class Workers>
  KOKKOS_FUNCTION void operator()(std::size_t row, const Workers& workers) const {
    const std::size_t count = scores.extent(1);
    const KeyRange seen = mask.columns(row, count);
    Real* const p = &scores(row, 0);
    Real* const g = &grad(row, 0);
    clear_outside(workers, p, seen, count);
    clear_outside(workers, g, seen, count);
    if (seen.empty()) return;
    const Real* const o = &state.output(row, 0);
    const Real* const go = &output_grad(row, 0);
    const Real along = workers.template sum<Real>(state.output.extent(1),
                                                  [=](std::size_t d) { return o[d] * go[d]; });
    const Real top = state.max(row, 0), share = Real(1) / state.sum(row, 0);
    const std::size_t begin = seen.begin;
    workers.each(seen.end - begin, [=](std::size_t j) {
      p[begin + j] = vector_exp(p[begin + j] - top) * share;
      g[begin + j] = p[begin + j] * (g[begin + j] - along);
    });
  }
};

/// One tile of the scores of one head, as Views into the whole matrices.
struct HeadTile {
  using Range = std::pair<std::size_t, std::size_t>;
  AttentionHeads heads;
  std::size_t head;
  Range rows, keys;

  /// The columns of the head in `view`, whose rows are queries.
  template <class View>
  [[nodiscard]] auto of_queries(const View& view) const {
    return Kokkos::subview(view, rows, heads.columns(head));
  }
  /// The columns of the head in `view`, whose rows are keys.
  template <class View>
  [[nodiscard]] auto of_keys(const View& view) const {
    return Kokkos::subview(view, keys, heads.columns(heads.kv_head(head)));
  }
  template <class Real, class Exec>
  [[nodiscard]] AttentionState<Real, Exec> of_state(const AttentionState<Real, Exec>& state) const {
    const Range column(head, head + 1);
    return {of_queries(state.output), Kokkos::subview(state.max, rows, column),
            Kokkos::subview(state.sum, rows, column)};
  }
  /// Tile 0 or 1 of the scratch.
  template <class View>
  [[nodiscard]] auto of_scratch(const View& scratch, std::size_t which) const {
    const std::size_t first = which * (scratch.extent(0) / 2);
    return Kokkos::subview(scratch, Range(first, first + rows.second - rows.first),
                           Range(0, keys.second - keys.first));
  }
  template <class Exec>
  [[nodiscard]] TileMask<Exec> mask(const VisibleKeys<Exec>& visible) const {
    return {Kokkos::subview(visible.ranges(), rows), keys.first};
  }
};

/// Calls visit(HeadTile) for every tile in which a query sees a key: by head, then by queries, then
/// by keys. The keys of a range of queries are cut into the fewest tiles, of even sizes.
template <ExecutionSpace Exec, class Visit>
void for_each_head_tile(const AttentionHeads& heads, const VisibleKeys<Exec>& visible,
                        const AttentionTile& tile, const Visit& visit) {
  for (std::size_t head = 0; head < heads.heads; ++head)
    for (std::size_t row = 0; row < visible.queries(); row += tile.queries) {
      const std::size_t end = std::min(row + tile.queries, visible.queries());
      const KeyRange seen = visible.of_queries(row, end);
      if (seen.empty()) continue;
      const std::size_t keys = seen.end - seen.begin;
      const std::size_t tiles = (keys + tile.keys - 1) / tile.keys;
      for (std::size_t t = 0; t < tiles; ++t)
        visit(HeadTile{heads,
                       head,
                       {row, end},
                       {seen.begin + t * keys / tiles, seen.begin + (t + 1) * keys / tiles}});
    }
}

template <class Input, ExecutionSpace Exec>
void expect_attention_input(const char* where, const AttentionHeads& heads,
                            const VisibleKeys<Exec>& visible, const Input& input) {
  expect_shape(where, "queries", input.queries, visible.queries(), heads.query_columns());
  expect_shape(where, "keys", input.keys, visible.keys(), heads.kv_columns());
  expect_shape(where, "values", input.values, visible.keys(), heads.kv_columns());
}

/// Returns the tile that fits into `scratch`.
template <class Scratch>
[[nodiscard]] AttentionTile scratch_tile(const char* where, const Scratch& scratch) {
  const AttentionTile tile{scratch.extent(0) / 2, scratch.extent(1)};
  expects(tile.queries > 0 && tile.keys > 0, [&] {
    return ErrorInfo{where, "the scratch is too small for a tile",
                     text("it is ", shape_text(scratch), ", expected at least 2 x 1"),
                     "use attention_tile<Exec>: scratch_rows() x keys"};
  });
  return tile;
}

}  // namespace impl

/// Continues `state` of the queries by the keys and values of `input`: state = join(state,
/// attention over these keys). A query that sees none of them keeps its state. Keys and values must
/// be finite, even those that no query sees. `scratch` holds two tiles of any size, see
/// AttentionTile; its contents have no meaning before and after. Queries are divided into tiles by
/// its rows, and the keys that they see by its columns.
template <ExecutionSpace Exec, std::floating_point Real>
void block_attention_forward(const Exec& exec, const AttentionHeads& heads,
                             const VisibleKeys<Exec>& visible,
                             const std::type_identity_t<AttentionInput<Real, Exec>>& input,
                             const std::type_identity_t<Matrix<Real, Exec>>& scratch,
                             const AttentionState<Real, Exec>& state) {
  constexpr const char* where = "heddle::kernel::block_attention_forward";
  impl::expect_attention_heads(where, heads);
  impl::expect_attention_input(where, heads, visible, input);
  impl::expect_attention_state(where, heads, visible.queries(), state);
  const auto scale = static_cast<Real>(1 / std::sqrt(static_cast<double>(heads.head_width)));
  constexpr auto no = Transpose::no, yes = Transpose::yes;
  const AttentionTile tile = impl::scratch_tile(where, scratch);
  impl::for_each_head_tile(heads, visible, tile, [&](const impl::HeadTile& at) {
    const Matrix<Real, Exec> scores = at.of_scratch(scratch, 0);
    const AttentionState<Real, Exec> rows = at.of_state(state);
    gemm(exec, no, yes, scale, at.of_queries(input.queries), at.of_keys(input.keys), 0, scores);
    impl::for_each_row("heddle::kernel::block_attention_forward_softmax", exec, scores.extent(0),
                       impl::ContinueSoftmax<Exec, Real>{scores, rows, at.mask(visible)});
    gemm(exec, no, no, 1, scores, at.of_keys(input.values), 1, rows.output);
  });
}

/// Adds the gradients of the queries, keys and values of `input` to `input_grad`. `state` is the
/// state after *all* keys of the sequence, and `output_grad` (queries x heads * head width) is the
/// gradient of its output. The sum over all blocks of keys is therefore the gradient of the whole
/// attention. For `scratch` see block_attention_forward().
template <ExecutionSpace Exec, std::floating_point Real>
void block_attention_backward(const Exec& exec, const AttentionHeads& heads,
                              const VisibleKeys<Exec>& visible,
                              const std::type_identity_t<AttentionInput<Real, Exec>>& input,
                              const std::type_identity_t<AttentionState<const Real, Exec>>& state,
                              const std::type_identity_t<Matrix<const Real, Exec>>& output_grad,
                              const std::type_identity_t<Matrix<Real, Exec>>& scratch,
                              const AttentionInputGrad<Real, Exec>& input_grad) {
  constexpr const char* where = "heddle::kernel::block_attention_backward";
  impl::expect_attention_heads(where, heads);
  impl::expect_attention_input(where, heads, visible, input);
  impl::expect_attention_input(where, heads, visible, input_grad);
  impl::expect_attention_state(where, heads, visible.queries(), state);
  impl::expect_shape(where, "output_grad", output_grad, visible.queries(), heads.query_columns());
  const auto scale = static_cast<Real>(1 / std::sqrt(static_cast<double>(heads.head_width)));
  constexpr auto no = Transpose::no, yes = Transpose::yes;
  const AttentionTile tile = impl::scratch_tile(where, scratch);
  impl::for_each_head_tile(heads, visible, tile, [&](const impl::HeadTile& at) {
    const Matrix<Real, Exec> scores = at.of_scratch(scratch, 0), grad = at.of_scratch(scratch, 1);
    const Matrix<const Real, Exec> rows_grad = at.of_queries(output_grad);
    const auto queries = at.of_queries(input.queries);
    const auto keys = at.of_keys(input.keys);
    gemm(exec, no, yes, scale, queries, keys, 0, scores);
    gemm(exec, no, yes, 1, rows_grad, at.of_keys(input.values), 0, grad);
    impl::for_each_row("heddle::kernel::block_attention_backward_softmax", exec, scores.extent(0),
                       impl::RecomputeSoftmax<Exec, Real>{scores, grad, at.of_state(state),
                                                          rows_grad, at.mask(visible)});
    gemm(exec, no, no, scale, grad, keys, 1, at.of_queries(input_grad.queries));
    gemm(exec, yes, no, scale, grad, queries, 1, at.of_keys(input_grad.keys));
    gemm(exec, yes, no, 1, scores, rows_grad, 1, at.of_keys(input_grad.values));
  });
}

}  // namespace heddle::inline v0::kernel
