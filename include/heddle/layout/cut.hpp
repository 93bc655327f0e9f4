// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// cut(): divides a line of weighted items into contiguous pieces, such as edges over threads, a
/// space-filling curve over ranks or layers over stages.

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <ranges>
#include <span>
#include <type_traits>
#include <vector>

#include <heddle/core/linkage.hpp>

namespace heddle::inline v0 {

namespace impl {

/// Does the work of cut() and cut_sums(). `sums[i]` is the weight of the items before item i.
[[nodiscard]] std::vector<std::int64_t> cut_line(std::vector<double> sums,
                                                 std::span<const double> shares);
/// Returns the running sums of `weights`, beginning with 0.
/// @throws contract_error if a weight is negative, infinite or not a number.
[[nodiscard]] std::vector<double> running_sums(std::span<const double> weights);
/// Returns `pieces` shares of 1. @throws contract_error if `pieces` is below 1.
[[nodiscard]] std::vector<double> equal_shares(int pieces);

/// A range of integers or floating-point numbers.
template <class R>
concept LineOfNumbers = std::ranges::input_range<const R> &&
    std::is_arithmetic_v<std::remove_cvref_t<std::ranges::range_reference_t<const R>>>;

/// Returns the elements of `numbers` as floating-point numbers.
template <LineOfNumbers R>
[[nodiscard]] std::vector<double> as_doubles(const R& numbers) {
  std::vector<double> values;
  if constexpr (std::ranges::sized_range<const R>)
    values.reserve(static_cast<std::size_t>(std::ranges::size(numbers)));
  for (const auto& number : numbers) values.push_back(static_cast<double>(number));
  return values;
}

}  // namespace impl

/// Returns the boundaries of contiguous pieces of a line of items, one piece for each share: piece
/// p consists of the items from result[p] up to but without result[p + 1]. The largest quotient
/// of a piece's weight and its share is the least that any such pieces have. This is exact if the
/// sums of weights are exact in double precision, as sums of integers below 2^53 are.
///
/// Each boundary is as near to the proportional one as this optimum and the boundaries before it
/// permit; of two equally near places it is the earlier one. An item of weight 0 beside a boundary
/// belongs to the piece behind it. Pieces may be empty, and a piece with share 0 is. If all weights
/// are 0, every item counts as 1. The search takes at most 64 passes over the pieces, and each pass
/// log(items) steps for each piece.
/// @param weights by item; any range of numbers of at least 0
/// @param shares by piece, for example the speeds of threads; at least 0
/// @throws contract_error if there are no shares, if all shares are 0, or if a number is negative,
///         infinite or not a number. It names the first such number.
template <impl::LineOfNumbers Weights>
[[nodiscard]] std::vector<std::int64_t> cut(const Weights& weights,
                                            const std::vector<double>& shares) {
  return impl::cut_line(impl::running_sums(impl::as_doubles(weights)), shares);
}

/// Returns the boundaries of so many pieces with equal shares.
/// @throws contract_error if `pieces` is below 1, or if a weight is wrong.
template <impl::LineOfNumbers Weights>
[[nodiscard]] std::vector<std::int64_t> cut(const Weights& weights, std::integral auto pieces) {
  return cut(weights, impl::equal_shares(static_cast<int>(pieces)));
}

namespace impl {

/// Returns the same boundaries from running sums: sums[i] - sums[0] is the weight of the items
/// before item i, and there is one sum more than there are items. The row offsets of a sparse
/// matrix are such sums, so cut_sums(offsets, ...) divides the rows by their entries.
/// @throws contract_error if there is no sum, if a sum is below the one before it, or if a number
///         is infinite or not a number.
template <impl::LineOfNumbers Sums>
[[nodiscard]] std::vector<std::int64_t> cut_sums(const Sums& sums,
                                                 const std::vector<double>& shares) {
  return impl::cut_line(impl::as_doubles(sums), shares);
}

/// Returns the boundaries of so many pieces with equal shares from running sums.
/// @throws contract_error if `pieces` is below 1, or if a sum is wrong.
template <impl::LineOfNumbers Sums>
[[nodiscard]] std::vector<std::int64_t> cut_sums(const Sums& sums, std::integral auto pieces) {
  return cut_sums(sums, impl::equal_shares(static_cast<int>(pieces)));
}

}  // namespace impl

}  // namespace heddle::inline v0

#if HEDDLE_DEFINES_LAYOUT
#include <heddle/layout/cut.ipp>
#endif
