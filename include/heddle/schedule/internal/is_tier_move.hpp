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

/// Returns true if a buffer is in a tier above 0, without which there are no moves between tiers.
[[nodiscard]] inline bool has_tiers(const Schedule& schedule) {
  for (const Buffer& buffer : schedule.buffers())
    if (+buffer.tier != 0) return true;
  return false;
}

/// Returns for each queue whether it has a move between tiers. Nothing buffers the moves of such a
/// queue, so each of them starts when its storage is free.
[[nodiscard]] inline std::vector<bool> tier_queues(const Schedule& schedule) {
  std::vector<bool> queues(schedule.queues().size(), false);
  if (!has_tiers(schedule)) return queues;
  for (std::size_t i = 0; i < schedule.size(); ++i)
    if (is_tier_move(schedule, ActionId{i})) queues[+schedule[ActionId{i}].queue] = true;
  return queues;
}

/// Returns for each queue whether it is a lane of a Mover: all of its actions are moves within its
/// rank, and at least one of them changes the tier.
[[nodiscard]] inline std::vector<bool> mover_lanes(const Schedule& schedule) {
  std::vector<bool> lanes = tier_queues(schedule);
  if (!has_tiers(schedule)) return lanes;
  for (std::size_t i = 0; i < schedule.size(); ++i)
    if (!is_move_within_rank(schedule, ActionId{i})) lanes[+schedule[ActionId{i}].queue] = false;
  return lanes;
}

}  // namespace heddle::inline v0::impl
