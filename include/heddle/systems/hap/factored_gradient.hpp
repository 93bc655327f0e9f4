// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// Sufficient factors: decides whether ranks sum the gradient of a linear layer or gather its
/// factors. The factors are smaller if there are few samples and many parameters.

#include <cstdint>

#include <heddle/core/linkage.hpp>
#include <heddle/core/units.hpp>

namespace heddle::inline v0::systems {

/// The gradient x^T dy of a linear layer y = x W. It is summed over ranks that have different rows
/// of x and dy.
struct FactoredGradient {
  std::uint64_t inputs = 0;   ///< columns of x
  std::uint64_t outputs = 0;  ///< columns of dy
  std::uint64_t rows = 0;     ///< rows of x and dy on all ranks together
  int ranks = 1;              ///< ranks that share the rows
  Scalar type = Scalar::f32;  ///< the element type
};

namespace impl {

/// Throws the error of a gradient or a price that is out of range.
[[noreturn]] void refuse(const FactoredGradient& gradient, Seconds per_byte, Seconds per_flop);

/// Checks a gradient and the prices of a byte and of a flop.
constexpr void check(const FactoredGradient& g, Seconds per_byte = 0, Seconds per_flop = 0) {
  const auto number = [](std::uint64_t value) { return static_cast<double>(value); };
  const auto in_range = [](double value, double end) { return value >= 0 && value < end; };
  constexpr double end = 0x1p63;
  const bool valid = g.ranks >= 1 && heddle::impl::is_known(g.type) &&
                     in_range(per_byte, 0x1p1023) && in_range(per_flop, 0x1p1023);
  if (!valid || !in_range(16.0 * g.ranks * number(g.inputs) * number(g.outputs), end) ||
      !in_range(8.0 * g.ranks * number(g.rows) * (number(g.inputs) + number(g.outputs)), end))
    refuse(g, per_byte, per_flop);
}

}  // namespace impl

/// Returns the bytes that all ranks send together in a ring all-reduce of the gradient: 2 (P - 1)
/// inputs x outputs elements.
/// @throws contract_error if there is no rank, if the type is unknown, or if a number of bytes does
///         not fit in 63 bits. So do the functions below.
[[nodiscard]] constexpr Bytes bytes_of_sum(const FactoredGradient& gradient) {
  impl::check(gradient);
  return 2 * static_cast<Bytes>(gradient.ranks - 1) * gradient.inputs * gradient.outputs *
         size_of(gradient.type);
}

/// Returns the bytes that all ranks send together until each has all factors: (P - 1) rows x
/// (inputs + outputs) elements.
[[nodiscard]] constexpr Bytes bytes_of_factors(const FactoredGradient& gradient) {
  impl::check(gradient);
  return static_cast<Bytes>(gradient.ranks - 1) * gradient.rows *
         (gradient.inputs + gradient.outputs) * size_of(gradient.type);
}

/// Returns the additional flops of a rank that multiplies the rows of all ranks and not only its
/// own.
[[nodiscard]] constexpr double extra_flops(const FactoredGradient& gradient) {
  impl::check(gradient);
  const double others = static_cast<double>(gradient.rows) * (gradient.ranks - 1) / gradient.ranks;
  return 2 * others * static_cast<double>(gradient.inputs) * static_cast<double>(gradient.outputs);
}

/// Returns true if it is faster to gather the factors and to multiply them on every rank than to
/// sum the products. All ranks send at once; a byte takes `per_byte` seconds and a flop `per_flop`
/// seconds. If computing takes no time, the condition is rows x (inputs + outputs) < 2 inputs x
/// outputs. Sources: P. Xie et al., "Lighter-communication distributed machine learning via
/// sufficient factor broadcasting", UAI 2016; S. Zhang et al., "HAP", EuroSys 2024, which chooses
/// by both prices.
/// @throws contract_error as bytes_of_sum(), or if a price is negative, infinite or not a number.
[[nodiscard]] constexpr bool prefers_factors(const FactoredGradient& gradient, Seconds per_byte,
                                             Seconds per_flop) {
  impl::check(gradient, per_byte, per_flop);
  const double saved =
      static_cast<double>(bytes_of_sum(gradient)) - static_cast<double>(bytes_of_factors(gradient));
  return saved / gradient.ranks * per_byte > extra_flops(gradient) * per_flop;
}

}  // namespace heddle::inline v0::systems

#if HEDDLE_DEFINES_SYSTEMS
#include <heddle/systems/hap/factored_gradient.ipp>
#endif
