// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// The usual reductions (sum, product, minimum, maximum, bitwise and logical) for collective calls.

#include <concepts>

#include <Kokkos_Core.hpp>

#include <heddle/collective/reduction.hpp>
#include <heddle/core/small_float.hpp>

namespace heddle::inline v0 {

namespace impl {

/// T has an infinity, which is then the identity of a minimum. Some versions of Kokkos take the
/// largest finite value instead, which is no identity of infinite elements.
template <class T>
concept HasInfinity = requires {
  Kokkos::Experimental::infinity<T>::value;
};

}  // namespace impl

/// The reduction a + b, for types that have + and Kokkos's `reduction_identity`.
struct Sum {
  /// Adds `from` to `into`.
  template <class T>
  KOKKOS_FUNCTION void join(T& into, const T& from) const {
    into = static_cast<T>(into + from);
  }
  /// Sets `value` to 0.
  template <class T>
  KOKKOS_FUNCTION void init(T& value) const {
    value = Kokkos::reduction_identity<T>::sum();
  }
};

/// The reduction a + b of elements that are stored in a narrow format (f16, bf16, f8e4m3, f8e5m2).
/// Each addition is computed in `Wide` and rounded to nearest once. A sum over P ranks is rounded
/// at most P - 1 times.
template <std::floating_point Wide = float>
struct SumIn {
  /// Adds `from` to `into`.
  template <class T>
  KOKKOS_FUNCTION void join(T& into, const T& from) const {
    into = static_cast<T>(static_cast<Wide>(into) + static_cast<Wide>(from));
  }
  /// Sets `value` to 0.
  template <class T>
  KOKKOS_FUNCTION void init(T& value) const {
    value = static_cast<T>(Wide(0));
  }
};

/// The reduction a * b of numbers. For a product that is not commutative, write a reduction with
/// `commutes = false`.
struct Product {
  /// Multiplies `into` by `from`.
  template <class T>
  KOKKOS_FUNCTION void join(T& into, const T& from) const {
    into = static_cast<T>(into * from);
  }
  /// Sets `value` to 1.
  template <class T>
  KOKKOS_FUNCTION void init(T& value) const {
    value = Kokkos::reduction_identity<T>::prod();
  }
};

/// The reduction min(a, b). If one operand is NaN, the result depends on the order of merging.
struct Min {
  /// Sets `into` to min(into, from).
  template <class T>
  KOKKOS_FUNCTION void join(T& into, const T& from) const {
    into = from < into ? from : into;
  }
  /// Sets `value` to infinity, or to the largest value of T if T has no infinity.
  template <class T>
  KOKKOS_FUNCTION void init(T& value) const {
    if constexpr (impl::HasInfinity<T>)
      value = Kokkos::Experimental::infinity_v<T>;
    else
      value = Kokkos::reduction_identity<T>::min();
  }
};

/// The reduction max(a, b). If one operand is NaN, the result depends on the order of merging.
struct Max {
  /// Sets `into` to max(into, from).
  template <class T>
  KOKKOS_FUNCTION void join(T& into, const T& from) const {
    into = into < from ? from : into;
  }
  /// Sets `value` to minus infinity, or to the least value of T if T has no infinity.
  template <class T>
  KOKKOS_FUNCTION void init(T& value) const {
    if constexpr (impl::HasInfinity<T>)
      value = -Kokkos::Experimental::infinity_v<T>;
    else
      value = Kokkos::reduction_identity<T>::max();
  }
};

/// The bitwise reduction a & b of integers.
struct BitAnd {
  /// Sets `into` to into & from.
  template <class T>
  KOKKOS_FUNCTION void join(T& into, const T& from) const {
    into = static_cast<T>(into & from);
  }
  /// Sets all bits of `value`.
  template <class T>
  KOKKOS_FUNCTION void init(T& value) const {
    value = static_cast<T>(~T{});
  }
};

/// The bitwise reduction a | b of integers.
struct BitOr {
  /// Sets `into` to into | from.
  template <class T>
  KOKKOS_FUNCTION void join(T& into, const T& from) const {
    into = static_cast<T>(into | from);
  }
  /// Clears all bits of `value`.
  template <class T>
  KOKKOS_FUNCTION void init(T& value) const {
    value = T{};
  }
};

/// The bitwise reduction a ^ b of integers.
struct BitXor {
  /// Sets `into` to into ^ from.
  template <class T>
  KOKKOS_FUNCTION void join(T& into, const T& from) const {
    into = static_cast<T>(into ^ from);
  }
  /// Clears all bits of `value`.
  template <class T>
  KOKKOS_FUNCTION void init(T& value) const {
    value = T{};
  }
};

/// The logical reduction a && b: 1 if both are not 0, else 0.
struct LogicalAnd {
  /// Sets `into` to into && from.
  template <class T>
  KOKKOS_FUNCTION void join(T& into, const T& from) const {
    into = static_cast<T>(into != T{} && from != T{});
  }
  /// Sets `value` to 1.
  template <class T>
  KOKKOS_FUNCTION void init(T& value) const {
    value = static_cast<T>(1);
  }
};

/// The logical reduction a || b: 1 if at least one is not 0, else 0.
struct LogicalOr {
  /// Sets `into` to into || from.
  template <class T>
  KOKKOS_FUNCTION void join(T& into, const T& from) const {
    into = static_cast<T>(into != T{} || from != T{});
  }
  /// Sets `value` to 0.
  template <class T>
  KOKKOS_FUNCTION void init(T& value) const {
    value = T{};
  }
};

static_assert(Reduction<Sum, double> && Reduction<SumIn<>, bf16> && Reduction<Product, float> &&
              Reduction<Min, int> && Reduction<Max, int> && Reduction<BitAnd, unsigned> &&
              Reduction<BitOr, unsigned> && Reduction<BitXor, unsigned> &&
              Reduction<LogicalAnd, int> && Reduction<LogicalOr, int>);

}  // namespace heddle::inline v0
