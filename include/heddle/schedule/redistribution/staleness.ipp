// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// Definitions of staleness.hpp.

#include <ostream>

#include <heddle/core/contract.hpp>
#include <heddle/core/linkage.hpp>
#include <heddle/core/text.hpp>
#include <heddle/schedule/redistribution/staleness.hpp>

namespace heddle::inline v0::schedule {

HEDDLE_INLINE std::ostream& operator<<(std::ostream& out, const Staleness& staleness) {
  out << "age " << staleness.age;
  if (staleness.warmup > 0) out << " after " << staleness.warmup;
  return out;
}

HEDDLE_INLINE void impl::expect_valid(const Staleness& staleness, const char* where) {
  expects(staleness.age >= 0, [&] {
    return ErrorInfo{where, "an age must be at least 0", text("age = ", staleness.age),
                     "use 0 to wait for new data"};
  });
  expects(staleness.warmup >= 0, [&] {
    return ErrorInfo{where, "a warm-up must be at least 0 calls",
                     text("warmup = ", staleness.warmup), "use 0 for no warm-up beyond the age"};
  });
}

}  // namespace heddle::inline v0::schedule
