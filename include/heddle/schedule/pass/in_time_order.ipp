// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// Definitions of in_time_order.hpp.

#include <algorithm>
#include <cstddef>
#include <numeric>
#include <utility>
#include <vector>

#include <heddle/core/linkage.hpp>
#include <heddle/schedule/builder.hpp>
#include <heddle/schedule/internal/check_spans.hpp>
#include <heddle/schedule/pass/in_time_order.hpp>

namespace heddle::inline v0::schedule {

HEDDLE_INLINE Schedule in_time_order(const Timeline& timeline) {
  heddle::impl::check_spans("heddle::schedule::in_time_order", timeline);
  const Schedule& schedule = timeline.schedule();
  std::vector<Seconds> begins(schedule.size());
  std::vector<Seconds> last(schedule.queues().size(), 0);
  for (std::size_t i = 0; i < schedule.size(); ++i) {
    // An eager message can start before its destination is free.
    Seconds& begin = begins[i];
    Seconds& before = last[+schedule[ActionId{i}].queue];
    begin = std::max(timeline[ActionId{i}].start, before);
    for (const After& after : schedule.after(ActionId{i}))
      begin = std::max(begin, begins[after.action]);
    before = begin;
    // Fused partners stay neighbours.
    if (i > 0 && (schedule[ActionId{i - 1}].flags & flag::with_next) != 0) begins[i - 1] = begin;
  }
  std::vector<std::size_t> order(schedule.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::stable_sort(order.begin(), order.end(),
                   [&](std::size_t a, std::size_t b) { return begins[a] < begins[b]; });
  Builder builder = Builder::like(schedule, [](const Buffer& buffer) { return buffer; });
  for (const std::size_t i : order) builder.add(schedule, ActionId{i}, schedule.uses(ActionId{i}));
  return std::move(builder).build();
}

}  // namespace heddle::inline v0::schedule
