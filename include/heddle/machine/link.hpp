// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// Link: the latency and bandwidth between two places.

#include <iosfwd>
#include <limits>

#include <heddle/core/linkage.hpp>
#include <heddle/core/units.hpp>

namespace heddle::inline v0 {

/// A directed connection of two ranks. A message of n bytes occupies it for n / bandwidth seconds.
/// It arrives `latency` seconds after that.
struct Link {
  Seconds latency = 0;  ///< seconds from the end of the occupancy to the arrival
  double bandwidth = std::numeric_limits<double>::infinity();  ///< bytes per second

  /// Time in seconds for which a message of `bytes` bytes occupies the link.
  [[nodiscard]] Seconds occupancy(Bytes bytes) const noexcept {
    return static_cast<double>(bytes) / bandwidth;
  }

  friend bool operator==(const Link&, const Link&) = default;
  /// Prints "2 us and 5 GB/s".
  friend std::ostream& operator<<(std::ostream& out, const Link& link);
};

}  // namespace heddle::inline v0

#if HEDDLE_DEFINES_MACHINE
#include <heddle/machine/link.ipp>
#endif
