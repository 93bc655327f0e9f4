// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// AttentionMask: the keys that a query of an attention layer sees. Kernels, schedules and cost
/// models read the same mask.

#include <cstdint>
#include <vector>

#include <heddle/core/linkage.hpp>
#include <heddle/layout/index_set.hpp>

namespace heddle::inline v0 {

/// A mask over the positions of one sequence. Several sequences that are packed into one are its
/// segments: a query sees only keys of its own segment.
struct AttentionMask {
  bool causal = true;  ///< a query sees no key behind its own position
  /// The positions at which a new segment begins, ascending. Position 0 may be left out.
  std::vector<std::int64_t> segments = {};

  /// Throws an error that names `where` if the segments do not ascend.
  /// @throws contract_error if a segment begins below 0, or not behind the one before it.
  void expect_valid(const char* where) const;

  /// Returns the positions that the query at `position` sees. Without a causal mask, the last
  /// segment has no end: the interval ends at the largest std::int64_t.
  [[nodiscard]] Interval visible(std::int64_t position) const;

  friend bool operator==(const AttentionMask&, const AttentionMask&) = default;
};

}  // namespace heddle::inline v0

#if HEDDLE_DEFINES_LAYOUT
#include <heddle/layout/attention_mask.ipp>
#endif
