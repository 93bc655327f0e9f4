// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// Staleness: the age of received data when it is used.

#include <cstdint>
#include <iosfwd>

#include <heddle/core/linkage.hpp>

namespace heddle::inline v0::schedule {

/// The age of the data that a repeated exchange provides, in calls.
struct Staleness {
  int age = 0;     ///< calls since the data was sent; 0 waits for the present call
  int warmup = 0;  ///< number of first calls that wait for their own exchange anyway

  /// The age of the data that call `call` uses, counted from 1. It is 0 in the first calls, because
  /// there is no older data yet.
  [[nodiscard]] constexpr int of_call(std::int64_t call) const noexcept {
    return call <= warmup || call <= age ? 0 : age;
  }

  friend constexpr bool operator==(const Staleness&, const Staleness&) = default;
  /// Prints "age 1 after 4".
  friend std::ostream& operator<<(std::ostream& out, const Staleness& staleness);
};

namespace impl {

/// Checks a Staleness on behalf of the function `where`.
/// @throws contract_error if the age or the warm-up is below 0.
void expect_valid(const Staleness& staleness, const char* where);

}  // namespace impl

}  // namespace heddle::inline v0::schedule

#if HEDDLE_DEFINES_SCHEDULE_REDISTRIBUTION
#include <heddle/schedule/redistribution/staleness.ipp>
#endif
