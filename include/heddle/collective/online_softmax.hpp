// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// OnlineSoftmax: computes in one pass the normaliser of a softmax over numbers on several ranks.

#include <concepts>

#include <Kokkos_Core.hpp>

#include <heddle/collective/reduction.hpp>
#include <heddle/kernel/vector_math.hpp>

namespace heddle::inline v0 {

/// The partial result of some numbers x for a softmax: their maximum, and the sum of exp(x - max).
template <std::floating_point Real>
struct SoftmaxPartial {
  Real max;  ///< the largest x; minus infinity if there is none
  Real sum;  ///< sum exp(x - max); 0 if there is none
};

/// The reduction that merges the partial results of two sets of numbers into that of their union.
/// Afterwards the softmax of x is exp(x - max) / sum. No exponent is positive, so nothing
/// overflows. A NaN in the input gives a NaN. Source: M. Milakov, N. Gimelshein, "Online normalizer
/// calculation for softmax", 2018, eq. (4).
struct OnlineSoftmax {
  /// Merges `from` into `into`. This takes one exponential, because the exponential of the larger
  /// maximum is 1.
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
  /// Sets `value` to the partial result of no numbers.
  template <class Real>
  KOKKOS_FUNCTION void init(SoftmaxPartial<Real>& value) const {
    value = {-Kokkos::Experimental::infinity_v<Real>, Real(0)};
  }
};
static_assert(Reduction<OnlineSoftmax, SoftmaxPartial<float>>);

}  // namespace heddle::inline v0
