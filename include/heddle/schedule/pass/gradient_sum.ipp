// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// Definitions of gradient_sum.hpp.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

#include <heddle/core/linkage.hpp>
#include <heddle/schedule/builder.hpp>
#include <heddle/schedule/pass/gradient_sum.hpp>

namespace heddle::inline v0 {

namespace impl {

/// Returns `schedule` with its group actions, and also its updates if `updates`, in local queue
/// `lane` and at other places in the list. If `eager`, such an action comes right after the
/// previous action that touches the same storage, otherwise right before the next one. No other
/// order between actions that share storage changes, so every read sees the same value as before.
inline Schedule place_groups(const Schedule& schedule, bool eager, Lane lane,
                             bool updates = false) {
  const std::size_t size = schedule.size();
  const auto together = [&](std::size_t action) {
    return (schedule[ActionId{action}].flags & flag::with_next) != 0;
  };
  const auto is_group = [&](std::size_t action) {
    const Kind kind = schedule[ActionId{action}].kind;
    return kind == Kind::group || (updates && kind == Kind::update);
  };
  // The sweep goes from the beginning or from the end. The neighbour of a group is the last action
  // of the sweep that touched one of its parts.
  std::vector<std::size_t> first_part;
  std::size_t parts = 0;
  for (const Buffer& buffer : schedule.buffers()) {
    first_part.push_back(parts);
    parts += buffer.parts;
  }
  std::vector<std::size_t> touched(parts, size);           // the last action; size: none
  std::vector<std::vector<std::size_t>> beside(size + 1);  // groups next to an action
  for (std::size_t n = 0; n < size; ++n) {
    const std::size_t i = eager ? n : size - 1 - n;
    std::size_t neighbour = size;
    for (const Use& use : schedule.uses(ActionId{i})) {
      for (std::uint32_t part = use.first; part < use.first + use.count; ++part) {
        std::size_t& last = touched[first_part[+use.buffer] + part];
        if (last != size && (neighbour == size || (eager ? last > neighbour : last < neighbour)))
          neighbour = last;
        last = i;
      }
    }
    if (!is_group(i)) continue;
    while (eager && neighbour != size && together(neighbour)) ++neighbour;
    while (!eager && neighbour != size && neighbour > 0 && together(neighbour - 1)) --neighbour;
    beside[neighbour].push_back(i);
  }
  Builder builder = Builder::like(schedule, [](const Buffer& buffer) { return buffer; });
  const auto add = [&](auto&& self, std::size_t i) -> void {
    const ActionId id{i};
    const auto groups = [&] {
      for (const std::size_t group : beside[i]) self(self, group);
    };
    if (!eager) groups();
    const Action& action = schedule[id];
    if (is_group(i))
      builder.add({action.kind, builder.local(schedule[action.queue].from, lane), action.stage,
                   action.item, action.flags, action.units},
                  schedule.uses(id));
    else
      builder.add(schedule, id, schedule.uses(id));
    if (eager) groups();
  };
  for (auto& groups : beside) std::sort(groups.begin(), groups.end());
  const auto alone = [&] {
    for (const std::size_t group : beside[size]) add(add, group);
  };
  if (eager) alone();
  for (std::size_t i = 0; i < size; ++i)
    if (!is_group(i)) add(add, i);
  if (!eager) alone();
  return std::move(builder).build();
}

}  // namespace impl

namespace schedule {

HEDDLE_INLINE Schedule eager_sums(const Schedule& schedule) {
  return heddle::impl::place_groups(schedule, true, Lane{1});
}

HEDDLE_INLINE Schedule eager_updates(const Schedule& schedule) {
  return heddle::impl::place_groups(schedule, true, Lane{1}, true);
}

HEDDLE_INLINE Schedule lazy_sums(const Schedule& schedule) {
  return heddle::impl::place_groups(schedule, false, Lane{0});
}

}  // namespace schedule

}  // namespace heddle::inline v0
