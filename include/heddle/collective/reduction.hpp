// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// Reduction: what a collective merges elements with. For whoever writes one of their own.

#include <concepts>
#include <type_traits>

namespace heddle::inline v0 {

/// An associative merge of elements of type T with an identity: `join(into, from)` makes `into` the
/// merge of both, `init(value)` makes `value` the identity, which leaves whatever it is joined with
/// as it was. Both are const, and KOKKOS_FUNCTIONs where Views lie in a device's memory.
///
/// Modelled by the operations of operations.hpp, by OnlineSoftmax, WeightedMean and Moments, and by
/// Kokkos's reducers (`Kokkos::MinLoc<double, int>`, with T its value_type), whose result is not
/// touched. Elements travel as bytes. Algorithms merge in an order of their own, which is the same
/// on all ranks: a merge that depends on the order (by rounding, or which of equal places MinLoc
/// finds) gives the same result everywhere, but not that of another number of ranks. One that means
/// something else in another order must say so, see commutes.
template <class R, class T>
concept Reduction = std::is_trivially_copyable_v<T> && std::copy_constructible<R> &&
    requires(const R& reduction, T& into, const T& from) {
  reduction.join(into, from);
  reduction.init(into);
};

/// Whether the order of what `R` merges does not matter. A reduction of which it does (a product of
/// matrices) has `static constexpr bool commutes = false`: calls then merge rank 0, 1, ..., P - 1
/// in this order, by way of rank 0, and refuse an algorithm that does not.
template <class R>
inline constexpr bool commutes = true;
/// The same for a reduction that says `commutes = false`.
template <class R>
requires(!R::commutes) inline constexpr bool commutes<R> = false;

/// The identity of `reduction` among elements of type T: what a rank puts in that has nothing to
/// say.
template <class T, Reduction<T> R>
[[nodiscard]] T identity(const R& reduction) {
  T value{};
  reduction.init(value);
  return value;
}

}  // namespace heddle::inline v0
