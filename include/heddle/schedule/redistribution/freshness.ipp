// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// Definitions of freshness.hpp.

#include <ostream>

#include <heddle/core/contract.hpp>
#include <heddle/core/linkage.hpp>
#include <heddle/core/text.hpp>
#include <heddle/schedule/redistribution/freshness.hpp>

namespace heddle::inline v0::schedule {

HEDDLE_INLINE std::ostream& operator<<(std::ostream& out, const Freshness& freshness) {
  out << "age " << freshness.age;
  if (freshness.warmup > 0) out << " after " << freshness.warmup;
  return out;
}

HEDDLE_INLINE void expect_valid(const Freshness& freshness, const char* where) {
  expects(freshness.age >= 0, [&] {
    return ErrorInfo{where, "an age must be at least 0", text("age = ", freshness.age),
                     "use 0 to wait for new data"};
  });
  expects(freshness.warmup >= 0, [&] {
    return ErrorInfo{where, "a warm-up must be at least 0 calls",
                     text("warmup = ", freshness.warmup), "use 0 for no warm-up beyond the age"};
  });
}

}  // namespace heddle::inline v0::schedule
