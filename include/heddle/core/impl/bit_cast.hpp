// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// std::bit_cast for functions that kernels call. Without nvcc's --expt-relaxed-constexpr, which
/// Kokkos does not set, std::bit_cast is a host function, and nvcc removes device code that calls
/// it.

#include <heddle/core/function.hpp>

namespace heddle::inline v0::impl {

/// Returns the value of type To that has the bits of `from`.
template <class To, class From>
[[nodiscard]] HEDDLE_FUNCTION constexpr To bit_cast(const From& from) noexcept {
  static_assert(sizeof(To) == sizeof(From));
  return __builtin_bit_cast(To, from);
}

}  // namespace heddle::inline v0::impl
