// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// Definitions of random.hpp.

#include <cmath>
#include <cstdint>
#include <numbers>

#include <heddle/core/linkage.hpp>
#include <heddle/core/random.hpp>

namespace heddle::inline v0 {

HEDDLE_INLINE double Random::normal(std::uint64_t index) const noexcept {
  const std::uint64_t word = bits(index);
  const double radius = (static_cast<double>(word >> 32) + 1.0) * 0x1p-32;  // (0, 1]
  const double angle = static_cast<double>(word & 0xffffffffu) * 0x1p-32;
  return std::sqrt(-2.0 * std::log(radius)) * std::cos(2.0 * std::numbers::pi * angle);
}

}  // namespace heddle::inline v0
