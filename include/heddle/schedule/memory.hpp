// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// Computes the memory of every rank over time, by role, and its peaks. It works on predicted and
/// on measured timelines.

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <string_view>
#include <vector>

#include <heddle/core/index.hpp>
#include <heddle/core/units.hpp>
#include <heddle/schedule/action.hpp>
#include <heddle/schedule/live_intervals.hpp>
#include <heddle/schedule/schedule.hpp>
#include <heddle/schedule/stage_storage.hpp>
#include <heddle/schedule/timeline.hpp>

namespace heddle::inline v0 {

/// An amount of memory: a number of parts, and their bytes if the Schedule has sizes.
struct Footprint {
  std::uint64_t parts = 0;  ///< the number of values, each in a part
  Bytes bytes = 0;          ///< the bytes of these parts

  friend constexpr bool operator==(const Footprint&, const Footprint&) = default;
};

/// A step of a memory curve.
template <class Time>
struct MemoryStep {
  Time at = {};     ///< the begin of the step, which ends where the next one begins
  Footprint holds;  ///< the memory that is held
};

/// A function of time, given as steps in order of time. A value that lives for no time at all still
/// needs a place, and appears as a second step at the same time. The curve is empty if no memory is
/// ever held.
template <class Time>
using MemoryCurve = std::vector<MemoryStep<Time>>;

namespace schedule {

/// Returns the peak of a curve, separately for parts and for bytes.
template <class Time>
[[nodiscard]] Footprint peak(const MemoryCurve<Time>& curve) {
  Footprint most;
  for (const auto& [at, holds] : curve)
    most = {std::max(most.parts, holds.parts), std::max(most.bytes, holds.bytes)};
  return most;
}

/// Returns the sum of these lives over time. At equal times, lives end before others begin, because
/// released memory can be reused at once. But a life that begins and ends at the same time ends
/// last, because its value needs a place however short its life is.
template <class Time>
[[nodiscard]] MemoryCurve<Time> memory_curve(const Schedule& schedule,
                                             const std::vector<LiveInterval<Time>>& lives) {
  enum class Event : std::uint8_t { end, begin, end_at_once };
  struct Change {
    Time at;
    Event event;
    Bytes bytes;
  };
  std::vector<Change> changes;
  changes.reserve(2 * lives.size());
  for (const auto& life : lives) {
    const Bytes bytes = part_bytes(schedule[life.buffer], life.part, 1);
    changes.push_back({life.begin, Event::begin, bytes});
    changes.push_back({life.end, life.begin < life.end ? Event::end : Event::end_at_once, bytes});
  }
  std::sort(changes.begin(), changes.end(), [](const Change& a, const Change& b) {
    return a.at < b.at || (!(b.at < a.at) && a.event < b.event);
  });
  MemoryCurve<Time> curve;
  Footprint now;
  for (std::size_t c = 0; c < changes.size(); ++c) {
    const auto& [at, event, bytes] = changes[c];
    if (event == Event::begin)
      now = {now.parts + 1, now.bytes + bytes};
    else
      now = {now.parts - 1, now.bytes - bytes};
    // One step for all lives that end and begin at a time, another for those that end at once.
    const bool last = c + 1 == changes.size() || at < changes[c + 1].at ||
                      (event != Event::end_at_once && changes[c + 1].event == Event::end_at_once);
    if (last && (curve.empty() || curve.back().holds != now)) curve.push_back({at, now});
  }
  return curve;
}

}  // namespace schedule

/// The memory of one rank over time.
template <class Time>
struct BasicMemoryUse {
  MemoryCurve<Time> activations;  ///< role::saved: the values that backward passes still need
  MemoryCurve<Time> weights;      ///< role::weights: a part for each stage and version
  MemoryCurve<Time> all;          ///< all buffers on the rank
};

using MemoryUse = BasicMemoryUse<Seconds>;  ///< memory over time in seconds

namespace schedule {

/// Returns the memory of every rank over time, in the order of the ranks. The result is a
/// prediction for a simulated timeline, and a measurement for a measured one.
template <class Time>
[[nodiscard]] std::vector<BasicMemoryUse<Time>> memory_use(const BasicTimeline<Time>& timeline) {
  const Schedule& schedule = timeline.schedule();
  std::vector<std::array<std::vector<LiveInterval<Time>>, 3>> of_rank(
      static_cast<std::size_t>(schedule.ranks()));
  for (const LiveInterval<Time>& life :
       live_intervals(timeline, [](const Buffer&) { return true; })) {
    const Buffer& buffer = schedule[life.buffer];
    auto& [activations, weights, all] = of_rank[+buffer.rank];
    const std::string_view label = schedule[buffer.label];
    if (label == role::saved) activations.push_back(life);
    if (label == role::weights) weights.push_back(life);
    all.push_back(life);
  }
  std::vector<BasicMemoryUse<Time>> result;
  for (const auto& [activations, weights, all] : of_rank)
    result.push_back({memory_curve(schedule, activations), memory_curve(schedule, weights),
                      memory_curve(schedule, all)});
  return result;
}

/// Returns the peak of the values of role `label` that are live on `rank`. With role::saved its
/// parts are the live activations, with role::weights the stages, or the versions of their weights.
template <class Time>
[[nodiscard]] Footprint peak(const BasicTimeline<Time>& timeline, Rank rank,
                             std::string_view label) {
  const Schedule& schedule = timeline.schedule();
  const auto found = live_intervals(timeline, [&](const Buffer& buffer) {
    return buffer.rank == rank && schedule[buffer.label] == label;
  });
  return peak(memory_curve(schedule, found));
}

/// Returns the peak of the live transient values on `rank`.
template <class Time>
[[nodiscard]] Footprint peak(const BasicTimeline<Time>& timeline, Rank rank) {
  const auto found = live_intervals(
      timeline, [&](const Buffer& buffer) { return buffer.rank == rank && buffer.transient; });
  return peak(memory_curve(timeline.schedule(), found));
}

}  // namespace schedule

}  // namespace heddle::inline v0
