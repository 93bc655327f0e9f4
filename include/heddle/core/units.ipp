// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// Definitions of units.hpp.

#include <chrono>
#include <ostream>

#include <heddle/core/linkage.hpp>
#include <heddle/core/units.hpp>

namespace heddle::inline v0 {

HEDDLE_INLINE Seconds steady_seconds() noexcept {
  return std::chrono::duration<Seconds>(std::chrono::steady_clock::now().time_since_epoch())
      .count();
}

HEDDLE_INLINE std::ostream& operator<<(std::ostream& out, Scalar scalar) {
  constexpr const char* names[] = {"byte", "i32",  "i64",    "f32",    "f64",
                                   "f16",  "bf16", "f8e4m3", "f8e5m2", "i8"};
  if (!impl::is_known(scalar)) return out << "unknown type " << static_cast<int>(scalar);
  return out << names[static_cast<int>(scalar)];
}

}  // namespace heddle::inline v0
