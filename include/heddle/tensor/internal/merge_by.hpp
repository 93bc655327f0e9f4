// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// MergeBy: what parts of elements are merged with, known when a program runs; and of which types
/// elements can be merged.

#include <concepts>

#include <Kokkos_Core.hpp>

#include <heddle/collective/operations.hpp>
#include <heddle/core/small_float.hpp>
#include <heddle/layout/placement.hpp>

namespace heddle::inline v0::impl {

/// The type in which elements of type T are merged: T itself, or float if T is a narrow storage
/// type. Results are then rounded after every merge.
template <class T>
struct MergedAs {
  using type = T;
};
template <int exponent, int mantissa, Beyond beyond>
struct MergedAs<SmallFloat<exponent, mantissa, beyond>> {
  using type = float;
};

/// Types whose elements add and multiply, such as numbers, complex ones too.
template <class T>
concept Mergeable = requires(const typename MergedAs<T>::type& a) {
  { a + a } -> std::convertible_to<typename MergedAs<T>::type>;
  { a* a } -> std::convertible_to<typename MergedAs<T>::type>;
};
/// Reductions that need an order of the elements, such as minimum and maximum.
template <class T>
concept OrderMergeable = Mergeable<T> && requires(const typename MergedAs<T>::type& a) {
  { a < a } -> std::convertible_to<bool>;
};

/// Returns true if elements of type T can be merged so.
template <class T>
[[nodiscard]] constexpr bool can_merge(Merge merge) {
  return merge == Merge::min || merge == Merge::max ? OrderMergeable<T> : Mergeable<T>;
}

/// A Reduction that does what `merge` says, which can_merge().
struct MergeBy {
  Merge merge = Merge::sum;

  template <class T>
  KOKKOS_FUNCTION void join(T& into, const T& from) const {
    using Number = typename MergedAs<T>::type;
    auto number = static_cast<Number>(into);
    const auto other = static_cast<Number>(from);
    if (merge == Merge::sum) Sum{}.join(number, other);
    if (merge == Merge::product) Product{}.join(number, other);
    if constexpr (OrderMergeable<T>) {
      if (merge == Merge::min) Min{}.join(number, other);
      if (merge == Merge::max) Max{}.join(number, other);
    }
    into = static_cast<T>(number);
  }
  /// The contribution of a rank without a part; here every rank has one.
  template <class T>
  KOKKOS_FUNCTION void init(T& value) const {
    value = T{};
  }
};

}  // namespace heddle::inline v0::impl
