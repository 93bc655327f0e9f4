// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// Reduction: the concept of the operations with which collective calls merge elements.

#include <type_traits>

namespace heddle::inline v0 {

/// An associative operation on elements of type T with an identity. `join(into, from)` sets `into`
/// to the merge of both. `init(value)` sets `value` to the identity. Both are const members, and
/// KOKKOS_FUNCTIONs if the Views are in device memory.
///
/// Models are the operations of operations.hpp, OnlineSoftmax, WeightedMean, Moments, and Kokkos's
/// reducers. For example, `Kokkos::MinLoc<double, int>` models it with its value_type as T; its own
/// result is not accessed.
///
/// Elements are sent as bytes. Algorithms merge in an order of their own, which is the same on all
/// ranks. If rounding depends on the order, or which of several equal places MinLoc finds, the
/// result is therefore the same on all ranks, but may change with the number of ranks. A reduction
/// that is not commutative must say so, see `commutes`.
template <class R, class T>
concept Reduction = std::is_trivially_copyable_v<T> && std::is_copy_constructible_v<R> &&
    requires(const R& reduction, T& into, const T& from) {
  reduction.join(into, from);
  reduction.init(into);
};

/// True if `R` is commutative, which is the default. A reduction that is not commutative, such as a
/// product of matrices, declares `static constexpr bool commutes = false`. Calls then merge ranks
/// 0, 1, ..., P - 1 in this order, by way of rank 0, and throw infeasible if the chosen algorithm
/// does not keep the order.
template <class R>
inline constexpr bool commutes = true;
/// The specialisation for reductions that declare `commutes = false`.
template <class R>
requires(!R::commutes) inline constexpr bool commutes<R> = false;

/// Returns the identity of `reduction` for elements of type T. A rank without a contribution uses
/// it.
template <class T, Reduction<T> R>
[[nodiscard]] T identity(const R& reduction) {
  T value{};
  reduction.init(value);
  return value;
}

}  // namespace heddle::inline v0
