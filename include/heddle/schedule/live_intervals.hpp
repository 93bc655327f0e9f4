// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// live_intervals(): computes the times during which the parts of buffers hold values that an
/// action still needs. The memory over time of a timeline follows from them.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

#include <heddle/core/contract.hpp>
#include <heddle/core/index.hpp>
#include <heddle/core/text.hpp>
#include <heddle/schedule/action.hpp>
#include <heddle/schedule/schedule.hpp>
#include <heddle/schedule/timeline.hpp>

namespace heddle::inline v0 {

/// The life of a value in one part: from the start of the action that wrote it to the end of the
/// last action that touched it. A value from the previous step lives from the begin of the
/// timeline. A value for the next step lives until the end of the timeline.
template <class Time>
struct LiveInterval {
  BufferId buffer;         ///< the buffer that holds the value
  std::uint32_t part = 0;  ///< the part that holds the value
  Time begin = {};         ///< the start of the action that wrote it
  Time end = {};           ///< the end of the last action that touched it
};

namespace schedule {

/// Returns the lives of all values whose buffer satisfies `selected(buffer)`, in no particular
/// order. A part of a persistent buffer that the step writes before it reads it carries no value
/// from step to step. So versions of weights are allocated and released like transient values.
/// Fused actions (flag::with_next) need all parts that any of them touches until they end.
template <class Time, class Select>
[[nodiscard]] std::vector<LiveInterval<Time>> live_intervals(const BasicTimeline<Time>& timeline,
                                                             Select&& selected) {
  const Schedule& schedule = timeline.schedule();
  expects(timeline.spans().size() == schedule.size(), [&] {
    return ErrorInfo{"heddle::schedule::live_intervals",
                     "the timeline does not belong to its schedule",
                     text(timeline.spans().size(), " spans, ", schedule.size(), " actions")};
  });
  constexpr std::size_t none = ~std::size_t{0};
  std::vector<std::size_t> first(schedule.buffers().size(), none);
  std::vector<std::size_t> open;  // the life of the present value of each part
  std::vector<bool> found;        // whether the part has a value from the previous step
  bool persistent = false;
  for (std::size_t b = 0; b < first.size(); ++b) {
    const Buffer& buffer = schedule[BufferId{b}];
    if (!selected(buffer)) continue;
    first[b] = open.size();
    open.resize(open.size() + buffer.parts, none);
    found.resize(open.size(), !buffer.transient);
    persistent |= !buffer.transient;
  }
  const Time begin = persistent ? timeline.begin() : Time{};
  const Time end = persistent ? timeline.end() : Time{};
  std::vector<LiveInterval<Time>> result;
  Time start{};    // of the fused actions
  Time arrival{};  // of their results
  for (std::size_t i = 0; i < schedule.size(); ++i) {
    const auto together = [&](std::size_t action) {
      return (schedule[ActionId{action}].flags & flag::with_next) != 0;
    };
    const auto& span = timeline.spans()[i];
    if (i == 0 || !together(i - 1)) {
      start = span.start;
      arrival = span.arrival;
      for (std::size_t next = i; together(next); ++next) {
        start = std::min(start, timeline.spans()[next + 1].start);
        arrival = std::max(arrival, timeline.spans()[next + 1].arrival);
      }
    }
    const bool moves = schedule[ActionId{i}].kind == Kind::move;
    for (const Use& use : schedule.uses(ActionId{i})) {
      if (first[+use.buffer] == none) continue;
      const Time until = moves && !use.writes() ? span.end : arrival;
      for (std::uint32_t part = use.first; part < use.first + use.count; ++part) {
        const std::size_t place = first[+use.buffer] + part;
        std::size_t& life = open[place];
        if (use.access() == Access::write) {
          if (life == none) found[place] = false;
          life = result.size();
          result.push_back({use.buffer, part, start, until});
        } else {
          if (life == none) {
            life = result.size();
            result.push_back({use.buffer, part, begin, until});
          }
          result[life].end = std::max(result[life].end, until);
        }
      }
    }
  }
  for (std::size_t b = 0; persistent && b < first.size(); ++b) {
    for (std::uint32_t part = 0; first[b] != none && part < schedule[BufferId{b}].parts; ++part) {
      const std::size_t place = first[b] + part;
      if (!found[place]) continue;
      if (open[place] == none)
        result.push_back({BufferId{b}, part, begin, end});
      else
        result[open[place]].end = end;
    }
  }
  return result;
}

}  // namespace schedule

}  // namespace heddle::inline v0
