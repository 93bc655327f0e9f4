// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// AttentionState: the attention of queries over the keys that they have seen so far, and the join
/// of two such states. Up to rounding, states with join form a commutative monoid. For a row and a
/// head:
///
///     max = max(max_a, max_b)
///     sum = w_a + w_b, with w_a = exp(max_a - max) sum_a and w_b = exp(max_b - max) sum_b
///     output = w_a / sum output_a + w_b / sum output_b
///
/// A weight is exp(score - max) / sum. The two numbers are not kept as one, max + log(sum): its
/// rounding error grows with the scores, and would be the relative error of every weight.

#include <cmath>
#include <cstddef>
#include <type_traits>
#include <utility>

#include <Kokkos_Core.hpp>

#include <heddle/core/contract.hpp>
#include <heddle/core/internal/fits.hpp>
#include <heddle/core/text.hpp>
#include <heddle/kernel/internal/loops.hpp>
#include <heddle/kernel/vector_math.hpp>
#include <heddle/kernel/view.hpp>

namespace heddle::inline v0::kernel {

/// The heads of an attention. Each head of K and V serves heads / kv_heads neighbouring heads of Q
/// (grouped-query attention, Ainslie et al., 2023).
struct AttentionHeads {
  std::size_t heads;       ///< heads of Q and of the output
  std::size_t kv_heads;    ///< heads of K and of V; a divisor of `heads`
  std::size_t head_width;  ///< columns of one head

  /// Returns the number of columns of Q and of the output.
  [[nodiscard]] std::size_t query_columns() const { return heads * head_width; }
  /// Returns the number of columns of K, which is also that of V.
  [[nodiscard]] std::size_t kv_columns() const { return kv_heads * head_width; }
  /// Returns the head of K and V that serves `head`.
  [[nodiscard]] std::size_t kv_head(std::size_t head) const { return head / (heads / kv_heads); }
  /// Returns the first column of a head, and one past its last column.
  [[nodiscard]] std::pair<std::size_t, std::size_t> columns(std::size_t head) const {
    return {head * head_width, (head + 1) * head_width};
  }

  friend bool operator==(const AttentionHeads&, const AttentionHeads&) = default;
};

namespace impl {

/// Throws an error that names `where` if `heads` is not the shape of an attention.
/// @throws contract_error if a number is 0, if the number of heads is not a multiple of the number
///         of K,V heads, or if 63 bits do not hold the number of columns.
inline void expect_attention_heads(const char* where, const AttentionHeads& heads) {
  expects(heads.head_width > 0 && heads.heads > 0 && heads.kv_heads > 0 &&
              heads.heads % heads.kv_heads == 0 &&
              heddle::impl::product_fits({3, heads.heads, heads.head_width}),
          [&] {
            return ErrorInfo{
                where, "the number of heads must be a multiple of the number of K,V heads",
                text("heads ", heads.heads, ", kv_heads ", heads.kv_heads, ", head_width ",
                     heads.head_width, "; expected positive numbers")};
          });
}

}  // namespace impl

/// The attention of each query over the keys that it has seen. A query that has seen no key has the
/// output 0, the maximum -inf and the sum 0, which is the identity of join_attention(). Real may be
/// const.
template <class Real, ExecutionSpace Exec>
struct AttentionState {
  Matrix<Real, Exec> output;  ///< queries x heads * head width: the weighted means of the values
  Matrix<Real, Exec> max;     ///< queries x heads: the largest score
  Matrix<Real, Exec> sum;     ///< queries x heads: the sum of exp(score - max)

  /// Returns the same state with const elements.
  template <class Read>
  requires(!std::is_const_v<Real> && std::is_same_v<Read, const Real>)
  operator AttentionState<Read, Exec>() const {
    return {output, max, sum};
  }
};

namespace impl {

/// Returns the number of elements of a state in contiguous memory: an output, a maximum and a sum
/// for each query and head.
[[nodiscard]] inline std::size_t attention_state_size(const AttentionHeads& heads,
                                                      std::size_t queries) {
  return queries * heads.heads * (heads.head_width + 2);
}

/// Returns the state of `queries` queries in the elements from `data` on: all outputs, then all
/// maxima, then all sums. Each of the three has room for `room` queries, so the whole takes
/// attention_state_size(heads, room) elements.
template <ExecutionSpace Exec, class Real>
[[nodiscard]] AttentionState<Real, Exec> attention_state_at(Real* data, const AttentionHeads& heads,
                                                            std::size_t queries, std::size_t room) {
  const std::size_t columns = heads.query_columns();
  Real* const max = data + room * columns;
  return {Matrix<Real, Exec>(data, queries, columns), Matrix<Real, Exec>(max, queries, heads.heads),
          Matrix<Real, Exec>(max + room * heads.heads, queries, heads.heads)};
}

/// Returns the state of `queries` queries in exactly attention_state_size() elements.
template <ExecutionSpace Exec, class Real>
[[nodiscard]] AttentionState<Real, Exec> attention_state_at(Real* data, const AttentionHeads& heads,
                                                            std::size_t queries) {
  return attention_state_at<Exec>(data, heads, queries, queries);
}

/// Throws an error that names `where` if `state` is not that of `queries` queries.
template <class Real, ExecutionSpace Exec>
void expect_attention_state(const char* where, const AttentionHeads& heads, std::size_t queries,
                            const AttentionState<Real, Exec>& state) {
  expect_shape(where, "output", state.output, queries, heads.query_columns());
  expect_shape(where, "max", state.max, queries, heads.heads);
  expect_shape(where, "sum", state.sum, queries, heads.heads);
}

/// Sets an element of a matrix.
template <ExecutionSpace Exec, class Real>
struct SetElement {
  Matrix<Real, Exec> matrix;
  Real value;
  KOKKOS_FUNCTION void operator()(std::size_t row, std::size_t column) const {
    matrix(row, column) = value;
  }
};

/// Joins one row and head of a state into another. A side that has seen nothing is left out, so the
/// identity changes no bit, and no difference of infinities is taken.
template <ExecutionSpace Exec, class Real>
struct JoinStates {
  AttentionState<const Real, Exec> from;
  AttentionState<Real, Exec> into;
  std::size_t head_width;

  KOKKOS_FUNCTION void operator()(std::size_t row, std::size_t head) const {
    const Real a = into.max(row, head), b = from.max(row, head);
    const Real nothing = -Kokkos::Experimental::infinity_v<Real>;
    if (b == nothing) return;
    Real* const to = &into.output(row, head * head_width);
    const Real* const other = &from.output(row, head * head_width);
    if (a == nothing) {
      for (std::size_t d = 0; d < head_width; ++d) to[d] = other[d];
      into.max(row, head) = b;
      into.sum(row, head) = from.sum(row, head);
      return;
    }
    const Real top = a > b ? a : b;
    const Real weight_a = vector_exp(a - top) * into.sum(row, head);
    const Real weight_b = vector_exp(b - top) * from.sum(row, head);
    const Real sum = weight_a + weight_b;
    const Real share_a = weight_a / sum, share_b = weight_b / sum;
    for (std::size_t d = 0; d < head_width; ++d) to[d] = share_a * to[d] + share_b * other[d];
    into.max(row, head) = top;
    into.sum(row, head) = sum;
  }
};

}  // namespace impl

/// Sets `state` to the identity: no query has seen a key. The kernel is queued in `exec`.
template <ExecutionSpace Exec, class Real>
void clear_attention(const Exec& exec, const AttentionState<Real, Exec>& state) {
  impl::for_each_element("heddle::kernel::clear_attention_output", exec, state.output.extent(0),
                         state.output.extent(1), impl::SetElement<Exec, Real>{state.output, 0});
  impl::for_each_element(
      "heddle::kernel::clear_attention_max", exec, state.max.extent(0), state.max.extent(1),
      impl::SetElement<Exec, Real>{state.max, -Kokkos::Experimental::infinity_v<Real>});
  impl::for_each_element("heddle::kernel::clear_attention_sum", exec, state.sum.extent(0),
                         state.sum.extent(1), impl::SetElement<Exec, Real>{state.sum, 0});
}

/// Joins the state `from` into the state `into` of the same queries and heads, row by row and head
/// by head. The kernel is queued in `exec`.
template <ExecutionSpace Exec, class Real>
void join_attention(const Exec& exec, const AttentionHeads& heads,
                    const std::type_identity_t<AttentionState<const Real, Exec>>& from,
                    const AttentionState<Real, Exec>& into) {
  constexpr const char* where = "heddle::kernel::join_attention";
  impl::expect_attention_heads(where, heads);
  impl::expect_attention_state(where, heads, from.max.extent(0), from);
  impl::expect_attention_state(where, heads, from.max.extent(0), into);
  impl::for_each_element("heddle::kernel::join_attention", exec, into.max.extent(0), heads.heads,
                         impl::JoinStates<Exec, Real>{from, into, heads.head_width});
}

}  // namespace heddle::inline v0::kernel
