// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// FarmOutcome: what became of an item of a farm, and FarmReport: the counts of a farm.

#include <cstdint>
#include <optional>
#include <string>

namespace heddle::inline v0::pattern {

/// The outcome of one item.
template <class Result>
struct FarmOutcome {
  std::optional<Result> value;  ///< the result, or nothing if every attempt failed
  std::string error;            ///< the text of the last error; empty if there is a result
  int attempts = 0;             ///< attempts until the item was finished
};

/// The counts of a farm.
struct FarmReport {
  std::int64_t items = 0;     ///< items that the source gave
  std::int64_t failed = 0;    ///< items without a result
  std::int64_t attempts = 0;  ///< attempts that were begun
  std::int64_t late = 0;      ///< attempts of silent workers whose end came too late
  std::int64_t known = 0;     ///< items whose outcome the journal had
};

}  // namespace heddle::inline v0::pattern
