// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// Attention by whole rows of probabilities, with the keys of a sequence in several blocks. It is
/// for methods that complete every row of scores before they read a value, such as ring
/// self-attention (Li et al., "Sequence Parallelism", ACL 2023). Compare block_attention.hpp, which
/// keeps no score.
///
/// Forward calls attention_scores() and add_to_softmax_sums() for every block of keys, then
/// scores_to_probabilities() and attend() for every block. Backward calls
/// attention_values_backward(), then attention_scores_backward(), for every block.
///
/// The scores of a block of keys are a matrix of heads * queries rows and a column for each key.
/// Row head * queries + query has the scores of one query. An element has no meaning if its query
/// does not see its key. All products are made by gemm for each head and tile
/// of queries, so the calls are in the order of `exec` as gemm is, and they allocate nothing.

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <type_traits>

#include <Kokkos_Core.hpp>

#include <heddle/kernel/attention_state.hpp>
#include <heddle/kernel/block_attention.hpp>
#include <heddle/kernel/internal/loops.hpp>
#include <heddle/kernel/internal/rows.hpp>
#include <heddle/kernel/linalg.hpp>
#include <heddle/kernel/vector_math.hpp>
#include <heddle/kernel/view.hpp>
#include <heddle/kernel/visible_keys.hpp>

namespace heddle::inline v0::kernel {
namespace impl {

/// Adds exp(score - max) of the visible keys of a tile to the sums of its rows.
template <ExecutionSpace Exec, class Real>
struct AddToSoftmaxSums {
  Matrix<const Real, Exec> scores;
  Vector<Real, Exec> max, sum;
  TileMask<Exec> mask;

  template <class Workers>
  KOKKOS_FUNCTION void operator()(std::size_t row, const Workers& workers) const {
    const KeyRange seen = mask.columns(row, scores.extent(1));
    if (seen.empty()) return;
    const Real* const s = &scores(row, seen.begin);
    const std::size_t keys = seen.end - seen.begin;
    const Real before = max(row);
    const Real found = workers.largest(s, keys);
    const Real top = before > found ? before : found;
    const Real old = vector_exp(before - top) * sum(row);
    const Real all = old + workers.template sum<Real>(
                               keys, [=](std::size_t j) { return vector_exp(s[j] - top); });
    workers.once([&] {
      sum(row) = all;
      max(row) = top;
    });
  }
};

/// Replaces the scores of a tile by probabilities; 0 for keys that a row does not see.
template <ExecutionSpace Exec, class Real>
struct ScoresToProbabilities {
  Matrix<Real, Exec> scores;
  Vector<const Real, Exec> max, sum;
  TileMask<Exec> mask;

  template <class Workers>
  KOKKOS_FUNCTION void operator()(std::size_t row, const Workers& workers) const {
    const KeyRange seen = mask.columns(row, scores.extent(1));
    Real* const all = &scores(row, 0);
    clear_outside(workers, all, seen, scores.extent(1));
    if (seen.empty()) return;
    Real* const p = all + seen.begin;
    const Real top = max(row), share = Real(1) / sum(row);
    workers.each(seen.end - seen.begin,
                 [=](std::size_t j) { p[j] = vector_exp(p[j] - top) * share; });
  }
};

/// Replaces the gradients dP of the probabilities P of a tile by those of the scores, P (dP -
/// output . output_grad); 0 for keys that a row does not see.
template <ExecutionSpace Exec, class Real>
struct RowSoftmaxBackward {
  Matrix<const Real, Exec> probabilities;
  Matrix<Real, Exec> grad;
  Matrix<const Real, Exec> output;       // of one head, the rows of the tile
  Matrix<const Real, Exec> output_grad;  // likewise
  TileMask<Exec> mask;

  template <class Workers>
  KOKKOS_FUNCTION void operator()(std::size_t row, const Workers& workers) const {
    const KeyRange seen = mask.columns(row, grad.extent(1));
    Real* const all = &grad(row, 0);
    clear_outside(workers, all, seen, grad.extent(1));
    if (seen.empty()) return;
    const Real* const p = &probabilities(row, seen.begin);
    Real* const g = all + seen.begin;
    const Real* const o = &output(row, 0);
    const Real* const go = &output_grad(row, 0);
    const Real along =
        workers.template sum<Real>(output.extent(1), [=](std::size_t d) { return o[d] * go[d]; });
    workers.each(seen.end - seen.begin, [=](std::size_t j) { g[j] = p[j] * (g[j] - along); });
  }
};

/// The rows and columns of a tile in the scores of a block of keys.
template <class View>
[[nodiscard]] auto tile_of_scores(const HeadTile& at, const View& scores, std::size_t queries) {
  const std::size_t first = at.head * queries;
  return Kokkos::subview(scores, HeadTile::Range(first + at.rows.first, first + at.rows.second),
                         at.keys);
}

/// The elements of a vector of heads * queries that belong to the rows of a tile.
template <class View>
[[nodiscard]] auto rows_of_tile(const HeadTile& at, const View& vector, std::size_t queries) {
  const std::size_t first = at.head * queries;
  return Kokkos::subview(vector, HeadTile::Range(first + at.rows.first, first + at.rows.second));
}

/// Calls visit(HeadTile) for every head and tile of queries. A tile has all keys that one of its
/// queries sees.
template <ExecutionSpace Exec, class Visit>
void for_each_row_tile(const AttentionHeads& heads, const VisibleKeys<Exec>& visible,
                       const Visit& visit) {
  for_each_head_tile(heads, visible,
                     {attention_tile<Exec>.queries, std::max<std::size_t>(visible.keys(), 1)},
                     visit);
}

template <ExecutionSpace Exec, class Scores>
void expect_scores(const char* where, const char* name, const AttentionHeads& heads,
                   const VisibleKeys<Exec>& visible, const Scores& scores) {
  expect_attention_heads(where, heads);
  expect_shape(where, name, scores, heads.heads * visible.queries(), visible.keys());
}

/// Writes the scores of `queries` (queries x heads * head width) with `keys` (keys x kv_heads *
/// head width): Q K^T / sqrt(head width), where `visible` has a query that sees a key.
/// @throws contract_error if a matrix has the wrong shape.
template <ExecutionSpace Exec, MatrixOn<Exec> Scores>
void attention_scores(const Exec& exec, const AttentionHeads& heads,
                      const VisibleKeys<Exec>& visible,
                      const std::type_identity_t<Matrix<const element<Scores>, Exec>>& queries,
                      const std::type_identity_t<Matrix<const element<Scores>, Exec>>& keys,
                      const Scores& scores) {
  using Real = element<Scores>;
  constexpr const char* where = "heddle::kernel::attention_scores";
  impl::expect_scores(where, "scores", heads, visible, scores);
  impl::expect_shape(where, "queries", queries, visible.queries(), heads.query_columns());
  impl::expect_shape(where, "keys", keys, visible.keys(), heads.kv_columns());
  const auto scale = static_cast<Real>(1 / std::sqrt(static_cast<double>(heads.head_width)));
  impl::for_each_row_tile(heads, visible, [&](const impl::HeadTile& at) {
    const Matrix<Real, Exec> tile = impl::tile_of_scores(at, scores, visible.queries());
    gemm(exec, Transpose::no, Transpose::yes, scale, at.of_queries(queries), at.of_keys(keys), 0,
         tile);
  });
}

/// Adds the scores of a block of keys to the softmax of every row: the largest score in `max`, and
/// the sum of exp(score - max) in `sum`. Both have heads * queries elements, which are -inf and 0
/// before the first block.
/// @throws contract_error if a matrix or a vector has the wrong shape.
template <ExecutionSpace Exec, impl::VectorOn<Exec> Sums>
void add_to_softmax_sums(const Exec& exec, const AttentionHeads& heads,
                         const VisibleKeys<Exec>& visible,
                         const std::type_identity_t<Matrix<const element<Sums>, Exec>>& scores,
                         const std::type_identity_t<Vector<element<Sums>, Exec>>& max,
                         const Sums& sum) {
  using Real = element<Sums>;
  constexpr const char* where = "heddle::kernel::add_to_softmax_sums";
  impl::expect_scores(where, "scores", heads, visible, scores);
  impl::expect_shape(where, "max", max, scores.extent(0));
  impl::expect_shape(where, "sum", sum, scores.extent(0));
  const std::size_t queries = visible.queries();
  impl::for_each_row_tile(heads, visible, [&](const impl::HeadTile& at) {
    const Matrix<const Real, Exec> tile = impl::tile_of_scores(at, scores, queries);
    impl::for_each_row(
        where, exec, tile.extent(0),
        impl::AddToSoftmaxSums<Exec, Real>{tile, impl::rows_of_tile(at, max, queries),
                                           impl::rows_of_tile(at, sum, queries), at.mask(visible)});
  });
}

/// Replaces the scores of a block of keys by probabilities, exp(score - max) / sum. `max` and `sum`
/// are those after *all* blocks.
/// @throws contract_error if a matrix or a vector has the wrong shape.
template <ExecutionSpace Exec, MatrixOn<Exec> Scores>
void scores_to_probabilities(const Exec& exec, const AttentionHeads& heads,
                             const VisibleKeys<Exec>& visible,
                             const std::type_identity_t<Vector<const element<Scores>, Exec>>& max,
                             const std::type_identity_t<Vector<const element<Scores>, Exec>>& sum,
                             const Scores& scores) {
  using Real = element<Scores>;
  constexpr const char* where = "heddle::kernel::scores_to_probabilities";
  impl::expect_scores(where, "scores", heads, visible, scores);
  impl::expect_shape(where, "max", max, scores.extent(0));
  impl::expect_shape(where, "sum", sum, scores.extent(0));
  const std::size_t queries = visible.queries();
  impl::for_each_row_tile(heads, visible, [&](const impl::HeadTile& at) {
    const Matrix<Real, Exec> tile = impl::tile_of_scores(at, scores, queries);
    impl::for_each_row(where, exec, tile.extent(0),
                       impl::ScoresToProbabilities<Exec, Real>{
                           tile, impl::rows_of_tile(at, max, queries),
                           impl::rows_of_tile(at, sum, queries), at.mask(visible)});
  });
}

}  // namespace impl

/// Adds the weighted values of a block of keys, P V, to `output` (queries x heads * head width).
/// @throws contract_error if a matrix has the wrong shape.
template <ExecutionSpace Exec, MatrixOn<Exec> Output>
void attend(const Exec& exec, const AttentionHeads& heads, const VisibleKeys<Exec>& visible,
            const std::type_identity_t<Matrix<const element<Output>, Exec>>& probabilities,
            const std::type_identity_t<Matrix<const element<Output>, Exec>>& values,
            const Output& output) {
  using Real = element<Output>;
  constexpr const char* where = "heddle::kernel::attend";
  impl::expect_scores(where, "probabilities", heads, visible, probabilities);
  impl::expect_shape(where, "values", values, visible.keys(), heads.kv_columns());
  impl::expect_shape(where, "output", output, visible.queries(), heads.query_columns());
  impl::for_each_row_tile(heads, visible, [&](const impl::HeadTile& at) {
    const Matrix<Real, Exec> rows = at.of_queries(output);
    gemm(exec, Transpose::no, Transpose::no, 1,
         impl::tile_of_scores(at, probabilities, visible.queries()), at.of_keys(values), 1, rows);
  });
}

namespace impl {

/// Writes the gradients of the scores of a block of keys, and adds the gradients of its values to
/// `values_grad`. `output` and `output_grad` (queries x heads * head width) are those of the whole
/// attention.
/// @throws contract_error if a matrix has the wrong shape.
template <ExecutionSpace Exec, MatrixOn<Exec> Grad>
void attention_values_backward(
    const Exec& exec, const AttentionHeads& heads, const VisibleKeys<Exec>& visible,
    const std::type_identity_t<Matrix<const element<Grad>, Exec>>& probabilities,
    const std::type_identity_t<Matrix<const element<Grad>, Exec>>& values,
    const std::type_identity_t<Matrix<const element<Grad>, Exec>>& output,
    const std::type_identity_t<Matrix<const element<Grad>, Exec>>& output_grad,
    const Grad& score_grad, const std::type_identity_t<Matrix<element<Grad>, Exec>>& values_grad) {
  using Real = element<Grad>;
  constexpr const char* where = "heddle::kernel::attention_values_backward";
  impl::expect_scores(where, "probabilities", heads, visible, probabilities);
  impl::expect_scores(where, "score_grad", heads, visible, score_grad);
  impl::expect_shape(where, "values", values, visible.keys(), heads.kv_columns());
  impl::expect_shape(where, "values_grad", values_grad, visible.keys(), heads.kv_columns());
  impl::expect_shape(where, "output", output, visible.queries(), heads.query_columns());
  impl::expect_shape(where, "output_grad", output_grad, visible.queries(), heads.query_columns());
  impl::for_each_row_tile(heads, visible, [&](const impl::HeadTile& at) {
    const std::size_t queries = visible.queries();
    const Matrix<const Real, Exec> weights = impl::tile_of_scores(at, probabilities, queries);
    const Matrix<Real, Exec> grad = impl::tile_of_scores(at, score_grad, queries);
    const Matrix<const Real, Exec> rows_grad = at.of_queries(output_grad);
    const Matrix<Real, Exec> of_values = at.of_keys(values_grad);
    gemm(exec, Transpose::yes, Transpose::no, 1, weights, rows_grad, 1, of_values);
    gemm(exec, Transpose::no, Transpose::yes, 1, rows_grad, at.of_keys(values), 0, grad);
    impl::for_each_row("heddle::kernel::attention_values_backward", exec, grad.extent(0),
                       impl::RowSoftmaxBackward<Exec, Real>{weights, grad, at.of_queries(output),
                                                            rows_grad, at.mask(visible)});
  });
}

/// Adds the gradients of the queries and of a block of keys to `queries_grad` and `keys_grad`, from
/// the gradients of their scores.
/// @throws contract_error if a matrix has the wrong shape.
template <ExecutionSpace Exec, MatrixOn<Exec> Grad>
void attention_scores_backward(
    const Exec& exec, const AttentionHeads& heads, const VisibleKeys<Exec>& visible,
    const std::type_identity_t<Matrix<const element<Grad>, Exec>>& score_grad,
    const std::type_identity_t<Matrix<const element<Grad>, Exec>>& queries,
    const std::type_identity_t<Matrix<const element<Grad>, Exec>>& keys, const Grad& queries_grad,
    const std::type_identity_t<Matrix<element<Grad>, Exec>>& keys_grad) {
  using Real = element<Grad>;
  constexpr const char* where = "heddle::kernel::attention_scores_backward";
  impl::expect_scores(where, "score_grad", heads, visible, score_grad);
  impl::expect_shape(where, "queries", queries, visible.queries(), heads.query_columns());
  impl::expect_shape(where, "queries_grad", queries_grad, visible.queries(), heads.query_columns());
  impl::expect_shape(where, "keys", keys, visible.keys(), heads.kv_columns());
  impl::expect_shape(where, "keys_grad", keys_grad, visible.keys(), heads.kv_columns());
  const auto scale = static_cast<Real>(1 / std::sqrt(static_cast<double>(heads.head_width)));
  impl::for_each_row_tile(heads, visible, [&](const impl::HeadTile& at) {
    const Matrix<const Real, Exec> grad = impl::tile_of_scores(at, score_grad, visible.queries());
    const Matrix<Real, Exec> of_queries = at.of_queries(queries_grad);
    const Matrix<Real, Exec> of_keys = at.of_keys(keys_grad);
    gemm(exec, Transpose::no, Transpose::no, scale, grad, at.of_keys(keys), 1, of_queries);
    gemm(exec, Transpose::yes, Transpose::no, scale, grad, at.of_queries(queries), 1, of_keys);
  });
}

}  // namespace impl

}  // namespace heddle::inline v0::kernel
