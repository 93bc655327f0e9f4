// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// Freshness: how old what other ranks sent may be when it is used.

#include <cstdint>
#include <iosfwd>

#include <heddle/core/linkage.hpp>

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
  friend std::ostream& operator<<(std::ostream& out, const Freshness& freshness);
};

/// @throws contract_error, from `where`, for an age or a warm-up below 0.
void expect_valid(const Freshness& freshness, const char* where);

}  // namespace heddle::inline v0::schedule

#if HEDDLE_HEADER_ONLY
#include <heddle/schedule/redistribution/freshness.ipp>
#endif
