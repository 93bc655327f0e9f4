// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// cases(): how long a random test is.

#include <algorithm>
#include <cstdint>
#include <cstdlib>

namespace heddle::test {

/// Returns how many cases a random test tries: `usual`, or the share of `longest` that the
/// environment variable HEDDLE_LONG says, if it is set, but no fewer than `usual`. scripts/soak
/// sets it for all tests that have a long form.
[[nodiscard]] inline std::uint64_t cases(std::uint64_t usual, std::uint64_t longest) {
  const char* const share = std::getenv("HEDDLE_LONG");
  if (share == nullptr) return usual;
  const double wanted = std::strtod(share, nullptr) * static_cast<double>(longest);
  return std::max(usual, static_cast<std::uint64_t>(std::max(wanted, 0.0)));
}

}  // namespace heddle::test
