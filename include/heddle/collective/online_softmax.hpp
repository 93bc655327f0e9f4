// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// OnlineSoftmax: the normaliser of a softmax over numbers that lie on several ranks, in one pass.

#include <concepts>

#include <Kokkos_Core.hpp>

#include <heddle/collective/reduction.hpp>
#include <heddle/kernel/vector_math.hpp>

namespace heddle::inline v0 {

/// The contribution of some numbers x to a softmax: their maximum, and the sum of exp(x - max).
template <std::floating_point Real>
struct SoftmaxPartial {
  Real max;  ///< the greatest x, minus infinity of none
  Real sum;  ///< sum exp(x - max), 0 of none
};

/// Merges the partials of two sets of numbers into that of their union: the softmax of x is then
/// exp(x - max) / sum. No exponent is positive, so nothing overflows. A NaN stays.
/// Source: M. Milakov, N. Gimelshein, "Online normalizer calculation for softmax", 2018, eq. (4).
struct OnlineSoftmax {
  /// The partial of both sets. One exponential: that of the greater maximum is 1.
  template <class Real>
  KOKKOS_FUNCTION void join(SoftmaxPartial<Real>& into, const SoftmaxPartial<Real>& from) const {
    const bool ours = into.max >= from.max;
    const Real high = ours ? into.max : from.max;
    const Real low = ours ? from.max : into.max;
    // Equal ones, of which both may be minus infinity, keep their weight.
    const Real weight = high == low ? Real(1) : kernel::vector_exp(low - high);
    into.sum = ours ? into.sum + weight * from.sum : weight * into.sum + from.sum;
    into.max = high;
  }
  /// The partial of no numbers.
  template <class Real>
  KOKKOS_FUNCTION void init(SoftmaxPartial<Real>& value) const {
    value = {-Kokkos::Experimental::infinity_v<Real>, Real(0)};
  }
};
static_assert(Reduction<OnlineSoftmax, SoftmaxPartial<float>>);

}  // namespace heddle::inline v0
