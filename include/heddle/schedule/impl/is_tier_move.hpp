// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// is_tier_move(): checks whether an action moves data between two memory levels of one rank, and
/// mover_lanes(): finds the queues of such moves.

#include <cstddef>
#include <vector>

#include <heddle/schedule/schedule.hpp>

namespace heddle::inline v0::impl {

/// Returns true if both buffers of the move `id` lie on the rank of its queue.
[[nodiscard]] inline bool is_move_within_rank(const Schedule& schedule, ActionId id) {
  const Action& action = schedule[id];
  const Queue& queue = schedule[action.queue];
  if (action.kind != Kind::move || !queue.local()) return false;
  const auto uses = schedule.uses(id);
  return schedule[uses[0].buffer].rank == queue.from && schedule[uses[1].buffer].rank == queue.from;
}

/// Returns true if the action `id` moves data from one tier of its rank to another.
[[nodiscard]] inline bool is_tier_move(const Schedule& schedule, ActionId id) {
  if (!is_move_within_rank(schedule, id)) return false;
  const auto uses = schedule.uses(id);
  return schedule[uses[0].buffer].tier != schedule[uses[1].buffer].tier;
}

/// Returns for each queue whether it is a lane of a Mover: all of its actions are moves within its
/// rank, and at least one of them changes the tier.
[[nodiscard]] inline std::vector<bool> mover_lanes(const Schedule& schedule) {
  std::vector<bool> lanes(schedule.queues().size(), false), other(lanes);
  for (std::size_t i = 0; i < schedule.size(); ++i) {
    const std::size_t queue = +schedule[ActionId{i}].queue;
    if (!is_move_within_rank(schedule, ActionId{i}))
      other[queue] = true;
    else if (is_tier_move(schedule, ActionId{i}))
      lanes[queue] = true;
  }
  for (std::size_t q = 0; q < lanes.size(); ++q) lanes[q] = lanes[q] && !other[q];
  return lanes;
}

}  // namespace heddle::inline v0::impl
