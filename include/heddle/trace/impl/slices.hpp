// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// Slices: the slices of a timeline. They do not overlap on a track, as trace viewers require.

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <vector>

#include <heddle/core/contract.hpp>
#include <heddle/core/text.hpp>
#include <heddle/schedule/timeline.hpp>

namespace heddle::inline v0::trace::impl {

using Nanoseconds = std::int64_t;

/// Returns `time` in nanoseconds, rounded.
[[nodiscard]] inline Nanoseconds nanoseconds(Seconds time) {
  return static_cast<Nanoseconds>(std::llround(time * 1e9));
}

/// An interval in nanoseconds from the begin of the timeline.
struct Slice {
  Nanoseconds start = 0;
  Nanoseconds end = 0;
};

/// The slices of every action. `here` is on the track of its queue at the rank on which it starts.
/// `there`, for moves between ranks, is on the track of the receiver.
///
/// The starts of a queue do not decrease in list order. A slice ends at the latest when the next
/// slice of its track starts, because several sends of a channel may be in flight at once. The
/// slice of a delivery starts with its move, or at the end of the delivery before it, and ends with
/// its arrival. It never starts before its send, as a flow arrow between the two requires.
struct Slices {
  std::vector<Slice> here;
  std::vector<Slice> there;

  explicit Slices(const Timeline& timeline) {
    const Schedule& schedule = timeline.schedule();
    const std::size_t actions = schedule.size();
    const Seconds begin = timeline.begin();
    // 2^63 ns are 292 years.
    expects(timeline.makespan() < 9.2e9, [&] {
      return ErrorInfo{"heddle::trace::to_perfetto", "the timeline is too long for nanoseconds",
                       text("makespan ", timeline.makespan(), " s"), "scale its times down"};
    });
    const auto convert = [begin](Seconds time) { return nanoseconds(time - begin); };
    here.resize(actions);
    there.resize(actions);
    struct Latest {
      Nanoseconds start = 0;
      Nanoseconds arrival = 0;
    };
    std::vector<Latest> latest(schedule.queues().size());
    for (std::size_t i = 0; i < actions; ++i) {
      const Span& span = timeline.spans()[i];
      Latest& queue = latest[+schedule[ActionId{i}].queue];
      here[i].start = queue.start = std::max(queue.start, convert(span.start));
      here[i].end = std::max(here[i].start, convert(span.end));
      there[i].start = std::max(queue.arrival, here[i].start);
      there[i].end = queue.arrival = std::max(there[i].start, convert(span.arrival));
    }
    std::vector<Nanoseconds> next(latest.size(), std::numeric_limits<Nanoseconds>::max());
    for (std::size_t i = actions; i-- > 0;) {
      Nanoseconds& after = next[+schedule[ActionId{i}].queue];
      here[i].end = std::min(here[i].end, after);
      after = here[i].start;
    }
  }
};

}  // namespace heddle::inline v0::trace::impl
