// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// Freshness: how old what other ranks sent may be when it is used.

#include <cstdint>
#include <ostream>

#include <heddle/core/contract.hpp>
#include <heddle/core/text.hpp>

namespace heddle::inline v0::schedule {

/// Of an exchange that is made again and again.
struct Freshness {
  int age = 0;     ///< calls ago that what is used was sent; 0: it is waited for
  int warmup = 0;  ///< first calls whose own exchange is waited for all the same

  /// Age of what call `call` uses, counted from 1: there is nothing of that age yet in the first
  /// ones.
  [[nodiscard]] constexpr int of_call(std::int64_t call) const noexcept {
    return call <= warmup || call <= age ? 0 : age;
  }

  friend constexpr bool operator==(const Freshness&, const Freshness&) = default;
  /// As in "age 1 after 4".
  friend std::ostream& operator<<(std::ostream& out, const Freshness& freshness) {
    out << "age " << freshness.age;
    if (freshness.warmup > 0) out << " after " << freshness.warmup;
    return out;
  }
};

/// @throws contract_error, from `where`, for an age or a warm-up below 0.
inline void expect_valid(const Freshness& freshness, const char* where) {
  expects(freshness.age >= 0, [&] {
    return Complaint{where, "an age is at least 0", text("age = ", freshness.age),
                     "use 0 to wait for what is new"};
  });
  expects(freshness.warmup >= 0, [&] {
    return Complaint{where, "a warm-up is at least 0 calls", text("warmup = ", freshness.warmup),
                     "use 0 for no more than the age takes"};
  });
}

}  // namespace heddle::inline v0::schedule
