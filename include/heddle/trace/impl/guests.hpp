// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// guests(): the other ranks of a group action. The action is in the queue of one rank but takes
/// place on all ranks that hold its operands, and pictures show it there too.

#include <algorithm>
#include <vector>

#include <heddle/schedule/schedule.hpp>

namespace heddle::inline v0::trace::impl {

/// Returns the ranks on which a group takes place, except the rank of its queue, in ascending
/// order. Other kinds have none, because the far end of a move is drawn separately. A group that
/// changes nothing is a wait of its own rank, as in a Trail.
[[nodiscard]] inline std::vector<Rank> guests(const Schedule& schedule, ActionId id) {
  std::vector<Rank> ranks;
  if (schedule[id].kind != Kind::group) return ranks;
  const auto uses = schedule.uses(id);
  if (std::none_of(uses.begin(), uses.end(), [](const Use& use) { return use.writes(); }))
    return ranks;
  const Rank home = schedule[schedule[id].queue].from;
  for (const Use& use : uses)
    if (const Rank rank = schedule[use.buffer].rank; rank != home) ranks.push_back(rank);
  std::sort(ranks.begin(), ranks.end());
  ranks.erase(std::unique(ranks.begin(), ranks.end()), ranks.end());
  return ranks;
}

/// A queue and a rank on which it has guests.
struct GuestQueue {
  QueueId queue;
  Rank rank;
  friend constexpr auto operator<=>(const GuestQueue&, const GuestQueue&) = default;
  // Redundant, but nvcc 13 does not define it otherwise.
  friend constexpr bool operator==(const GuestQueue&, const GuestQueue&) = default;
};

/// Returns all guest queues, in ascending order of queue and rank.
[[nodiscard]] inline std::vector<GuestQueue> guest_queues(const Schedule& schedule) {
  std::vector<GuestQueue> found;
  for (std::size_t i = 0; i < schedule.size(); ++i)
    for (const Rank rank : guests(schedule, ActionId{i}))
      found.push_back({schedule[ActionId{i}].queue, rank});
  std::sort(found.begin(), found.end());
  found.erase(std::unique(found.begin(), found.end()), found.end());
  return found;
}

}  // namespace heddle::inline v0::trace::impl
