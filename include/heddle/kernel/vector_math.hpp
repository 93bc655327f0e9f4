// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// exp without branches, tables or calls, so that compilers can vectorise loops that use it. It is
/// for kernels that would otherwise wait for a scalar library function. The code is
/// the same on every back end and consists of sums and products only. If a compiler fuses a product
/// with a sum, the last bit may differ. The stated error holds in both cases.

#include <concepts>
#include <cstdint>

#include <Kokkos_Core.hpp>

// The compiler may undo the rounding below, (x + c) - c. g++ says so for
// -funsafe-math-optimizations and -fassociative-math too, clang for -ffast-math alone.
#if defined(__FAST_MATH__) || defined(__ASSOCIATIVE_MATH__)
#define HEDDLE_SUMS_REORDERED
#endif

namespace heddle::inline v0::kernel {
namespace impl {

/// The numbers of exp(x) = 2^n exp(r) with n = x / ln 2 rounded and r = x - n ln 2, and of
/// (exp(r) - 1 - r) / r^2 as the polynomial that equals it in the Chebyshev points of |r| <= ln 2 /
/// 2; that leaves 0.16 ulp of exp(r) in float and 0.15 in double.
template <class Real>
struct ExpNumbers;

template <>
struct ExpNumbers<float> {
  using Bits = std::uint32_t;
  static constexpr int mantissa_bits = 23;
  static constexpr Bits exponent_bias = 127;
  static constexpr float rounder = 12582912;  // 1.5 2^23: in its neighbourhood one ulp is 1
  static constexpr float per_ln2 = 1.44269504f;
  static constexpr float ln2_high = 0.693145751953125f;  // 15 bits: n times it is exact
  static constexpr float ln2_low = 1.42860682e-6f;
  static constexpr float exp_end = 104;  // beyond it exp is 0 or infinity

  KOKKOS_INLINE_FUNCTION static float series(float r) {
    return 0.5f +
           r * (0.1666657703f + r * (0.04166655466f + r * (0.008363173075f + r * 0.001392617612f)));
  }
};

template <>
struct ExpNumbers<double> {
  using Bits = std::uint64_t;
  static constexpr int mantissa_bits = 52;
  static constexpr Bits exponent_bias = 1023;
  static constexpr double rounder = 6755399441055744;  // 1.5 2^52
  static constexpr double per_ln2 = 1.4426950408889634;
  static constexpr double ln2_high = 0x1.62e42fefa2p-1;  // 40 bits
  static constexpr double ln2_low = 7.371002565167799e-13;
  static constexpr double exp_end = 746;

  KOKKOS_INLINE_FUNCTION static double series(double r) {
    const double low =
        0.5000000000000001 +
        r * (0.16666666666666669 +
             r * (0.041666666666624164 + r * (0.008333333333330065 + r * 0.0013888888917196719)));
    const double high = 0.00019841269863040545 +
                        r * (2.4801521322368692e-05 +
                             r * (2.7557268480310024e-06 +
                                  r * (2.7620075879983367e-07 + r * 2.5100375832561234e-08)));
    const double square = r * r;
    return low + square * square * r * high;
  }
};

/// x where |x| <= end or x is not a number, else end with the sign of x. The sign keeps compilers
/// from treating end as a case of its own, which would be a branch.
template <class Real>
KOKKOS_INLINE_FUNCTION Real within(Real end, Real x) {
  const Real signed_end = Kokkos::copysign(end, x);
  return Kokkos::abs(x) > end ? signed_end : x;
}

/// x as n ln 2 + r: n + rounder, so that n stands in the lowest bits, and exp(r) - 1.
template <class Real>
struct ReducedExp {
  using Numbers = ExpNumbers<Real>;
  Real shifted, minus_one;

  KOKKOS_INLINE_FUNCTION explicit ReducedExp(Real x)
      : shifted(x * Numbers::per_ln2 + Numbers::rounder) {
    const Real r = (x - n() * Numbers::ln2_high) - n() * Numbers::ln2_low;
    minus_one = r + r * r * Numbers::series(r);
  }
  [[nodiscard]] KOKKOS_INLINE_FUNCTION Real n() const { return shifted - Numbers::rounder; }

  /// 2^k for k = `from` - rounder, |k| <= 127 or 1023: the shift drops all bits but those of k.
  [[nodiscard]] KOKKOS_INLINE_FUNCTION static Real power_of_two(Real from) {
    const auto bits = Kokkos::bit_cast<typename Numbers::Bits>(from);
    return Kokkos::bit_cast<Real>((bits + Numbers::exponent_bias) << Numbers::mantissa_bits);
  }
};

}  // namespace impl

/// Returns exp(x) with an error of at most 1.1 ulp for float and double, also for denormal results.
/// exp(-inf) = 0, exp(inf) = inf, and NaN stays NaN. Results above the largest number are inf, and
/// results below half the smallest number are 0. If the compiler may reorder sums (-ffast-math), it
/// calls Kokkos::exp.
template <std::floating_point Real>
KOKKOS_INLINE_FUNCTION Real vector_exp(Real x) {
#if defined(HEDDLE_SUMS_REORDERED)
  return Kokkos::exp(x);
#else
  using Numbers = impl::ExpNumbers<Real>;
  const impl::ReducedExp<Real> reduced(impl::within(Numbers::exp_end, x));
  // 2^n in two factors: n may lie outside the exponents that one number has.
  const Real half = reduced.n() * Real(0.5) + Numbers::rounder;
  const Real rest = (reduced.n() - (half - Numbers::rounder)) + Numbers::rounder;
  return (Real(1) + reduced.minus_one) * reduced.power_of_two(half) * reduced.power_of_two(rest);
#endif
}

}  // namespace heddle::inline v0::kernel

#undef HEDDLE_SUMS_REORDERED
