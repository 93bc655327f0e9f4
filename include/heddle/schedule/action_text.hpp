// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// The text of actions: `2F0`, `2SEND_F0`, `3RECV_F0`, and per-rank lists with communication, in
/// the vocabulary of torch.distributed.pipelining.

#include <string>
#include <vector>

#include <heddle/core/text.hpp>
#include <heddle/schedule/schedule.hpp>

namespace heddle::inline v0 {

/// The text of an action at one of its ends (0: source, 1: destination; only moves have two).
/// A move inside one rank is a COPY, or a PREFETCH or EVICT where it changes the tier.
[[nodiscard]] inline std::string action_text(const Schedule& schedule, ActionId id, int end) {
  const Action& action = schedule[id];
  if (action.kind != Kind::move) return text(action.stage, action.kind, action.item);
  const Buffer& source = schedule[schedule.uses(id)[0].buffer];
  const Buffer& target = schedule[schedule.uses(id)[1].buffer];
  if (source.rank == target.rank) {
    const char* name = source.tier == target.tier  ? "COPY"
                       : source.tier > target.tier ? "PREFETCH"
                                                   : "EVICT";
    return text(action.stage, name, action.item);
  }
  const char* payload = action.flags & flag::gradient ? "_B" : "_F";
  return end == 0 ? text(source.stage, "SEND", payload, action.item)
                  : text(target.stage, "RECV", payload, action.item);
}

/// The text of an action as a whole: `2F0`; a move between ranks is `2SEND_F0 -> 3RECV_F0`.
[[nodiscard]] inline std::string action_text(const Schedule& schedule, ActionId id) {
  const Action& action = schedule[id];
  if (action.kind == Kind::move && !schedule[action.queue].local())
    return action_text(schedule, id, 0) + " -> " + action_text(schedule, id, 1);
  return action_text(schedule, id, 0);
}

/// A line per rank: its actions in list order, separated by commas, sends and receives included.
[[nodiscard]] inline std::string to_text(const Schedule& schedule) {
  std::vector<std::string> lines(static_cast<std::size_t>(schedule.ranks()));
  const auto append = [&](Rank rank, const std::string& what) {
    std::string& line = lines[+rank];
    line += line.empty() ? what : "," + what;
  };
  for (std::size_t i = 0; i < schedule.size(); ++i) {
    const ActionId id{i};
    const Queue& queue = schedule[schedule[id].queue];
    if (schedule[id].kind == Kind::group) {  // every member has it
      for (const Use& member : schedule.uses(id))
        append(schedule[member.buffer].rank, action_text(schedule, id));
      continue;
    }
    append(queue.from, action_text(schedule, id, 0));
    if (!queue.local()) append(queue.to, action_text(schedule, id, 1));
  }
  std::string result;
  for (const std::string& line : lines) result += line + "\n";
  return result;
}

}  // namespace heddle::inline v0
