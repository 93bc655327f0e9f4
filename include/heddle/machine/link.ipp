// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// Definitions of link.hpp.

#include <ostream>

#include <heddle/core/linkage.hpp>
#include <heddle/machine/link.hpp>

namespace heddle::inline v0 {

HEDDLE_INLINE std::ostream& operator<<(std::ostream& out, const Link& link) {
  return out << link.latency * 1e6 << " us and " << link.bandwidth / 1e9 << " GB/s";
}

}  // namespace heddle::inline v0
