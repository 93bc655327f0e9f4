// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// Whether to send a gradient or what it is made of: for linear layers with few samples and many
/// parameters.

#include <cstdint>

#include <heddle/core/units.hpp>

namespace heddle::inline v0::plan {

/// The gradient x^T dy of a linear layer y = x W, to be summed over ranks that have different rows
/// of x and dy.
struct FactoredGradient {
  std::uint64_t inputs = 0;   ///< columns of x
  std::uint64_t outputs = 0;  ///< columns of dy
  std::uint64_t rows = 0;     ///< of all ranks together
  int ranks = 1;              ///< that share the rows
  Scalar type = Scalar::f32;  ///< of the elements
};

/// What all ranks send together in a ring all-reduce of the gradient: 2 (P - 1) inputs x outputs
/// elements.
[[nodiscard]] constexpr Bytes bytes_of_sum(const FactoredGradient& gradient) noexcept {
  return 2 * static_cast<Bytes>(gradient.ranks - 1) * gradient.inputs * gradient.outputs *
         size_of(gradient.type);
}

/// What all ranks send together so that each has all factors: (P - 1) rows x (inputs + outputs)
/// elements.
[[nodiscard]] constexpr Bytes bytes_of_factors(const FactoredGradient& gradient) noexcept {
  return static_cast<Bytes>(gradient.ranks - 1) * gradient.rows *
         (gradient.inputs + gradient.outputs) * size_of(gradient.type);
}

/// What a rank with its share of the rows computes besides where it multiplies those of all.
[[nodiscard]] constexpr double extra_flops(const FactoredGradient& gradient) noexcept {
  const double others = static_cast<double>(gradient.rows) * (gradient.ranks - 1) / gradient.ranks;
  return 2 * others * static_cast<double>(gradient.inputs) * static_cast<double>(gradient.outputs);
}

/// Whether gathering the factors and multiplying them everywhere is faster than summing the
/// products, with every rank sending at once, a byte in `per_byte` seconds, and computing a flop in
/// `per_flop`. Where computing costs nothing: rows x (inputs + outputs) < 2 inputs x outputs.
/// Sources: P. Xie et al., "Lighter-communication distributed machine learning via sufficient
/// factor broadcasting", UAI 2016; S. Zhang et al., "HAP", EuroSys 2024, which chooses by both
/// prices.
[[nodiscard]] constexpr bool prefers_factors(const FactoredGradient& gradient, Seconds per_byte,
                                             Seconds per_flop) noexcept {
  const double saved =
      static_cast<double>(bytes_of_sum(gradient)) - static_cast<double>(bytes_of_factors(gradient));
  return saved / gradient.ranks * per_byte > extra_flops(gradient) * per_flop;
}

}  // namespace heddle::inline v0::plan
