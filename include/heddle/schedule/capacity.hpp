// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// check_capacity(): compares the memory of a Timeline, tier by tier, with the capacities of a
/// Machine.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <heddle/core/contract.hpp>
#include <heddle/core/error.hpp>
#include <heddle/core/index.hpp>
#include <heddle/core/text.hpp>
#include <heddle/core/units.hpp>
#include <heddle/machine/machine.hpp>
#include <heddle/schedule/action_text.hpp>
#include <heddle/schedule/live_intervals.hpp>
#include <heddle/schedule/memory.hpp>
#include <heddle/schedule/schedule.hpp>
#include <heddle/schedule/timeline.hpp>

namespace heddle::inline v0 {

namespace impl {

/// Returns the memory over time of every rank in each of its tiers: `result[rank][tier]`. Every
/// rank has an entry for each tier up to the highest one that a buffer of the Schedule is in.
template <class Time>
[[nodiscard]] std::vector<std::vector<MemoryCurve<Time>>> memory_by_tier(
    const BasicTimeline<Time>& timeline) {
  const Schedule& schedule = timeline.schedule();
  std::size_t tiers = 0;
  for (const Buffer& buffer : schedule.buffers()) tiers = std::max(tiers, +buffer.tier + 1);
  const auto ranks = static_cast<std::size_t>(schedule.ranks());
  std::vector<std::vector<LiveInterval<Time>>> lives(ranks * tiers);
  for (const LiveInterval<Time>& life :
       schedule::live_intervals(timeline, [](const Buffer&) { return true; }))
    lives[+schedule[life.buffer].rank * tiers + +schedule[life.buffer].tier].push_back(life);
  std::vector<std::vector<MemoryCurve<Time>>> result(ranks);
  for (std::size_t place = 0; place < lives.size(); ++place)
    result[place / tiers].push_back(schedule::memory_curve(schedule, lives[place]));
  return result;
}

/// A step of a memory curve at which a rank needs more memory than a tier has.
template <class Time>
struct CapacityExcess {
  Rank rank = {};      ///< the rank
  Tier tier = {};      ///< the tier
  Time at = {};        ///< the first time of the peak
  Bytes needed = 0;    ///< the bytes that live at this time
  Bytes capacity = 0;  ///< the bytes that the tier has
  /// The last action in the list that begins at this time and writes to the tier, if there is one.
  std::optional<ActionId> action = {};
};

/// Returns the rank and tier that lack most bytes, or nothing if the Timeline fits the Machine. A
/// capacity of 0 is unknown and never exceeded. A device without memories has unknown capacities.
/// The sizes of buffers that are not bound count as 0.
/// @throws contract_error if the Machine has fewer ranks than the Schedule, or if a device has
///         memories but none for the tier of a buffer.
template <class Time>
[[nodiscard]] std::optional<CapacityExcess<Time>> capacity_excess(
    const BasicTimeline<Time>& timeline, const Machine& machine) {
  constexpr const char* where = "heddle::schedule::check_capacity";
  const Schedule& schedule = timeline.schedule();
  expects(schedule.ranks() <= machine.ranks(), [&] {
    return ErrorInfo{where, "the machine has too few ranks",
                     text("'", schedule.name(), "' has ", schedule.ranks(), " ranks, the machine ",
                          machine.ranks())};
  });
  for (const Buffer& buffer : schedule.buffers()) {
    const std::size_t memories = machine.device(buffer.rank).memories.size();
    expects(memories == 0 || +buffer.tier < memories, [&] {
      return ErrorInfo{where, text("rank ", buffer.rank, " has no tier ", buffer.tier),
                       text("'", schedule[buffer.label], "' lies there, and its device has ",
                            memories, memories == 1 ? " memory" : " memories"),
                       "add the memory to Device::memories"};
    });
  }
  const auto curves = memory_by_tier(timeline);
  std::optional<CapacityExcess<Time>> worst;
  for (std::size_t r = 0; r < curves.size(); ++r) {
    const std::vector<Memory>& memories = machine.device(Rank{r}).memories;
    for (std::size_t t = 0; t < std::min(curves[r].size(), memories.size()); ++t) {
      const Bytes capacity = memories[t].capacity;
      for (const MemoryStep<Time>& step : curves[r][t]) {
        const Bytes most = worst ? worst->needed - worst->capacity : 0;
        if (capacity == 0 || step.holds.bytes <= capacity || step.holds.bytes - capacity <= most)
          continue;
        worst = CapacityExcess<Time>{Rank{r}, Tier{t}, step.at, step.holds.bytes, capacity};
      }
    }
  }
  for (std::size_t i = 0; worst && i < schedule.size(); ++i) {
    const Time& start = timeline.spans()[i].start;
    if (start < worst->at || worst->at < start) continue;
    for (const Use& use : schedule.uses(ActionId{i}))
      if (use.writes() && schedule[use.buffer].rank == worst->rank &&
          schedule[use.buffer].tier == worst->tier)
        worst->action = ActionId{i};
  }
  return worst;
}

}  // namespace impl

namespace schedule {

/// Checks that every rank has room for its buffers in all of its memory tiers, at every time of
/// `timeline`: for its buffers that live then.
/// @throws infeasible if a tier is too small. The error names the rank, the tier, the time, the
///         action that begins then, and the bytes that lack.
/// @throws contract_error if the machine has fewer ranks than the schedule, or a rank fewer tiers.
template <class Time>
void check_capacity(const BasicTimeline<Time>& timeline, const Machine& machine) {
  const auto excess = heddle::impl::capacity_excess(timeline, machine);
  if (!excess) return;
  const Schedule& schedule = timeline.schedule();
  const std::string name = machine.device(excess->rank).memories[+excess->tier].name;
  throw infeasible(
      {"heddle::schedule::check_capacity",
       text("'", schedule.name(), "' does not fit in tier ", excess->tier, " ('", name,
            "') of rank ", excess->rank),
       text("at time ", excess->at,
            excess->action ? text(", when ", action_text(schedule, *excess->action), " begins, ")
                           : std::string(", "),
            excess->needed, " bytes live there; it has ", excess->capacity, ", so ",
            excess->needed - excess->capacity, " bytes lack"),
       "keep fewer values at once, divide them among more ranks, or move some to a larger tier"});
}

}  // namespace schedule

}  // namespace heddle::inline v0
