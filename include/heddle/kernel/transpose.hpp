// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// Whether a matrix product reads an operand as it lies or transposed.

#include <ostream>

namespace heddle::inline v0::kernel {

/// Whether a matrix is taken as it is, or its rows for columns.
enum class Transpose : bool { no, yes };

/// `transposed` or `plain`.
inline std::ostream& operator<<(std::ostream& out, Transpose transpose) {
  return out << (transpose == Transpose::yes ? "transposed" : "plain");
}

}  // namespace heddle::inline v0::kernel
