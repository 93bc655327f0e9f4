// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// Definitions of algorithm.hpp.

#include <ostream>

#include <heddle/core/linkage.hpp>
#include <heddle/schedule/collective/algorithm.hpp>

namespace heddle::inline v0::schedule {

HEDDLE_INLINE std::ostream& operator<<(std::ostream& out, Collective collective) {
  return out << to_string(collective);
}

HEDDLE_INLINE std::ostream& operator<<(std::ostream& out, Algorithm algorithm) {
  return out << to_string(algorithm);
}

}  // namespace heddle::inline v0::schedule
