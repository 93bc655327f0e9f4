// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// The usual reductions: sum, product, extremes, bits and truth. For collectives on Views of
/// numbers.

#include <concepts>

#include <Kokkos_Core.hpp>

#include <heddle/collective/reduction.hpp>
#include <heddle/core/small_float.hpp>

namespace heddle::inline v0 {

/// a + b, of any type that adds and has Kokkos's `reduction_identity`.
struct Sum {
  /// into + from.
  template <class T>
  KOKKOS_FUNCTION void join(T& into, const T& from) const {
    into = static_cast<T>(into + from);
  }
  /// 0.
  template <class T>
  KOKKOS_FUNCTION void init(T& value) const {
    value = Kokkos::reduction_identity<T>::sum();
  }
};

/// a + b of elements that are only stored narrow (f16, bf16, f8e4m3, f8e5m2): added as `Wide`, and
/// rounded to nearest once. What is merged over P ranks is rounded P - 1 times at most.
template <std::floating_point Wide = float>
struct SumIn {
  /// into + from.
  template <class T>
  KOKKOS_FUNCTION void join(T& into, const T& from) const {
    into = static_cast<T>(static_cast<Wide>(into) + static_cast<Wide>(from));
  }
  /// 0.
  template <class T>
  KOKKOS_FUNCTION void init(T& value) const {
    value = static_cast<T>(Wide(0));
  }
};

/// a * b, of numbers: of what does not commute write a reduction that says so.
struct Product {
  /// into * from.
  template <class T>
  KOKKOS_FUNCTION void join(T& into, const T& from) const {
    into = static_cast<T>(into * from);
  }
  /// 1.
  template <class T>
  KOKKOS_FUNCTION void init(T& value) const {
    value = Kokkos::reduction_identity<T>::prod();
  }
};

/// The lesser one. Of a number and a NaN, whichever the order of merging prefers.
struct Min {
  /// min(into, from).
  template <class T>
  KOKKOS_FUNCTION void join(T& into, const T& from) const {
    into = from < into ? from : into;
  }
  /// The largest value there is.
  template <class T>
  KOKKOS_FUNCTION void init(T& value) const {
    value = Kokkos::reduction_identity<T>::min();
  }
};

/// The greater one. Of a number and a NaN, whichever the order of merging prefers.
struct Max {
  /// max(into, from).
  template <class T>
  KOKKOS_FUNCTION void join(T& into, const T& from) const {
    into = into < from ? from : into;
  }
  /// The least value there is.
  template <class T>
  KOKKOS_FUNCTION void init(T& value) const {
    value = Kokkos::reduction_identity<T>::max();
  }
};

/// a & b, bit by bit, of integers.
struct BitAnd {
  /// into & from.
  template <class T>
  KOKKOS_FUNCTION void join(T& into, const T& from) const {
    into = static_cast<T>(into & from);
  }
  /// All bits set.
  template <class T>
  KOKKOS_FUNCTION void init(T& value) const {
    value = static_cast<T>(~T{});
  }
};

/// a | b, bit by bit, of integers.
struct BitOr {
  /// into | from.
  template <class T>
  KOKKOS_FUNCTION void join(T& into, const T& from) const {
    into = static_cast<T>(into | from);
  }
  /// No bit set.
  template <class T>
  KOKKOS_FUNCTION void init(T& value) const {
    value = T{};
  }
};

/// a ^ b, bit by bit, of integers.
struct BitXor {
  /// into ^ from.
  template <class T>
  KOKKOS_FUNCTION void join(T& into, const T& from) const {
    into = static_cast<T>(into ^ from);
  }
  /// No bit set.
  template <class T>
  KOKKOS_FUNCTION void init(T& value) const {
    value = T{};
  }
};

/// Whether both are true, that is not 0: 1 or 0.
struct LogicalAnd {
  /// into && from.
  template <class T>
  KOKKOS_FUNCTION void join(T& into, const T& from) const {
    into = static_cast<T>(into != T{} && from != T{});
  }
  /// 1.
  template <class T>
  KOKKOS_FUNCTION void init(T& value) const {
    value = static_cast<T>(1);
  }
};

/// Whether one is true, that is not 0: 1 or 0.
struct LogicalOr {
  /// into || from.
  template <class T>
  KOKKOS_FUNCTION void join(T& into, const T& from) const {
    into = static_cast<T>(into != T{} || from != T{});
  }
  /// 0.
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
