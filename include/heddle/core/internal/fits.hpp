// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// product_fits(): whether the sizes of an array have a product that 63 bits can hold.

#include <algorithm>
#include <cstdint>
#include <initializer_list>
#include <limits>

namespace heddle::inline v0::impl {

/// Returns whether the product of the factors fits in 63 bits. A factor of 0 counts as 1, so that
/// also the product of some of the factors fits.
[[nodiscard]] constexpr bool product_fits(std::initializer_list<std::uint64_t> factors) noexcept {
  std::uint64_t product = 1;
  for (const std::uint64_t factor : factors)
    if (__builtin_mul_overflow(product, std::max<std::uint64_t>(factor, 1), &product)) return false;
  return product <= static_cast<std::uint64_t>(std::numeric_limits<std::int64_t>::max());
}

}  // namespace heddle::inline v0::impl
