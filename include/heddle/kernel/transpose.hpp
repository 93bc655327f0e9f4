// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// Transpose: whether a matrix product transposes an operand.

#include <ostream>

namespace heddle::inline v0::kernel {

/// Whether a matrix is used as it is or transposed.
enum class Transpose : bool { no, yes };

/// Prints `transposed` or `plain`.
inline std::ostream& operator<<(std::ostream& out, Transpose transpose) {
  return out << (transpose == Transpose::yes ? "transposed" : "plain");
}

}  // namespace heddle::inline v0::kernel
