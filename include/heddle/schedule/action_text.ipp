// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// Definitions of action_text.hpp.

#include <string>
#include <vector>

#include <heddle/core/linkage.hpp>
#include <heddle/core/text.hpp>
#include <heddle/schedule/action_text.hpp>
#include <heddle/schedule/schedule.hpp>

namespace heddle::inline v0 {

namespace schedule {

HEDDLE_INLINE std::string action_text(const Schedule& schedule, ActionId id, int end) {
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

HEDDLE_INLINE std::string action_text(const Schedule& schedule, ActionId id) {
  const Action& action = schedule[id];
  if (action.kind == Kind::move && !schedule[action.queue].local())
    return action_text(schedule, id, 0) + " -> " + action_text(schedule, id, 1);
  return action_text(schedule, id, 0);
}

}  // namespace schedule

HEDDLE_INLINE std::string to_text(const Schedule& schedule) {
  std::vector<std::string> lines(static_cast<std::size_t>(schedule.ranks()));
  const auto append = [&](Rank rank, const std::string& what) {
    std::string& line = lines[+rank];
    line += line.empty() ? what : "," + what;
  };
  for (std::size_t i = 0; i < schedule.size(); ++i) {
    const ActionId id{i};
    const Queue& queue = schedule[schedule[id].queue];
    if (schedule[id].kind == Kind::group) {  // each member prints it
      for (const Use& member : schedule.uses(id))
        append(schedule[member.buffer].rank, schedule::action_text(schedule, id));
      continue;
    }
    append(queue.from, schedule::action_text(schedule, id, 0));
    if (!queue.local()) append(queue.to, schedule::action_text(schedule, id, 1));
  }
  std::string result;
  for (const std::string& line : lines) result += line + "\n";
  return result;
}

}  // namespace heddle::inline v0
