// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// Definitions of attention_mask.hpp.

#include <algorithm>
#include <cstddef>
#include <limits>

#include <heddle/core/contract.hpp>
#include <heddle/core/linkage.hpp>
#include <heddle/core/text.hpp>
#include <heddle/layout/attention_mask.hpp>

namespace heddle::inline v0 {

HEDDLE_INLINE void AttentionMask::expect_valid(const char* where) const {
  for (std::size_t s = 0; s < segments.size(); ++s) {
    const std::int64_t least = s == 0 ? 0 : segments[s - 1] + 1;
    expects(segments[s] >= least, [&] {
      return ErrorInfo{where, "the segments do not ascend",
                       text("segment ", s, " begins at position ", segments[s],
                            "; expected at least ", least),
                       "sort the first positions of the segments, and list each once"};
    });
  }
}

HEDDLE_INLINE Interval AttentionMask::visible(std::int64_t position) const {
  const auto next = std::ranges::upper_bound(segments, position);
  const std::int64_t begin = next == segments.begin() ? 0 : *(next - 1);
  const std::int64_t end =
      next == segments.end() ? std::numeric_limits<std::int64_t>::max() : *next;
  return {begin, causal ? std::min(end, position + 1) : end};
}

}  // namespace heddle::inline v0
