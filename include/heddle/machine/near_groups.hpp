// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// near_groups(): which ranks of a Machine are near each other.

#include <algorithm>
#include <limits>
#include <vector>

#include <heddle/core/index.hpp>
#include <heddle/core/units.hpp>
#include <heddle/machine/machine.hpp>

namespace heddle::inline v0 {

/// Sizes of the groups of ranks that are near each other, of the first `ranks` ranks of `machine`:
/// ascending, each a multiple of the one before, above 1 and below `ranks`. A group is ranks that
/// follow one another; there are more than one, all of one size. They are those of a level of the
/// machine, or such that a message of `bytes` takes less time over each link inside of groups than
/// over any between them. Ranks that are near each other otherwise, in groups of several sizes or
/// in turns, are in none.
[[nodiscard]] inline std::vector<int> near_groups(const Machine& machine, int ranks, Bytes bytes) {
  const auto are_near = [&](int size) {
    Seconds inside = 0;
    Seconds between = std::numeric_limits<Seconds>::infinity();
    for (int from = 0; from < ranks; ++from) {
      for (int to = 0; to < ranks; ++to) {
        if (from == to) continue;
        const Link& link = machine.link(Rank{from}, Rank{to});
        const Seconds time = link.latency + link.occupancy(bytes);
        if (from / size == to / size)
          inside = std::max(inside, time);
        else
          between = std::min(between, time);
        if (inside >= between) return false;
      }
    }
    return true;
  };
  const auto levels = machine.levels();
  std::vector<int> found;
  for (int size = 2; size <= ranks / 2; ++size) {
    if (ranks % size != 0 || (!found.empty() && size % found.back() != 0)) continue;
    if (std::ranges::find(levels, size, &Level::ranks) != levels.end() || are_near(size))
      found.push_back(size);
  }
  return found;
}

}  // namespace heddle::inline v0
