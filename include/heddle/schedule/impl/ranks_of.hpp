// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// ranks_of(): the ranks that take part in an action.

#include <algorithm>
#include <vector>

#include <heddle/core/index.hpp>
#include <heddle/schedule/schedule.hpp>

namespace heddle::inline v0::impl {

/// Returns the ranks that take part in an action: one, the two ends of a message, or the members of
/// a group.
[[nodiscard]] inline std::vector<Rank> ranks_of(const Schedule& schedule, ActionId id) {
  const Queue& queue = schedule[schedule[id].queue];
  if (!queue.local()) return {queue.from, queue.to};
  std::vector<Rank> ranks = {queue.from};
  if (schedule[id].kind != Kind::group) return ranks;
  for (const Use& use : schedule.uses(id)) ranks.push_back(schedule[use.buffer].rank);
  std::ranges::sort(ranks);
  ranks.erase(std::unique(ranks.begin(), ranks.end()), ranks.end());
  return ranks;
}

}  // namespace heddle::inline v0::impl
