// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// levels_of(): the levels of a hierarchical collective, as the ranks' domains of memory have them.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

#include <heddle/schedule/collective/algorithm.hpp>
#include <heddle/schedule/collective/hierarchical.hpp>

namespace heddle::inline v0::schedule {

/// Ranks with one number in `domains` (see SharesMemory) as the innermost level, straight from each
/// to each, and the domains by `outer` above them. Where the domains are not groups of as many
/// ranks that follow one another, and where there is one only, all ranks are one level.
[[nodiscard]] inline std::vector<GroupLevel> levels_of(const std::vector<std::uint32_t>& domains,
                                                       Algorithm outer = Algorithm::ring) {
  const auto ranks = domains.size();
  std::size_t inside = 1;
  while (inside < ranks && domains[inside] == domains[0]) ++inside;
  bool even = inside > 0 && ranks % inside == 0;
  for (std::size_t r = inside; even && r < ranks; ++r)
    even = (domains[r] == domains[r - 1]) == (r % inside != 0);
  if (even && inside == ranks) return {{static_cast<int>(ranks), Algorithm::direct}};
  if (!even || inside == 1) return {{static_cast<int>(ranks), outer}};
  return {{static_cast<int>(inside), Algorithm::direct}, {static_cast<int>(ranks / inside), outer}};
}

}  // namespace heddle::inline v0::schedule
