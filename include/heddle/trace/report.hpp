// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// The bubble report: where every rank's time goes, in theory, as simulated and as measured.

#include <iosfwd>
#include <optional>
#include <string>
#include <vector>

#include <heddle/core/linkage.hpp>
#include <heddle/core/units.hpp>
#include <heddle/schedule/timeline.hpp>

namespace heddle::inline v0::trace {

/// Where the makespan of a timeline goes on one rank: the seven add up to it. Filling and emptying
/// the pipeline is what a schedule costs by its shape; a gap between is put down to what came last
/// of all that the work after it waited for.
struct RankTime {
  Seconds busy = 0;     ///< at least one of its lanes does the model's work (is_work)
  Seconds warm_up = 0;  ///< before its first work
  Seconds receive = 0;  ///< waiting for the arrival of a message
  Seconds send = 0;     ///< waiting for a message to be gone, so that its storage is free
  Seconds other = 0;    ///< any other gap
  Seconds drain = 0;    ///< any gap after its last forward and before its last backward
  Seconds tail = 0;     ///< after its last work but updates: for sums of gradients and other ranks

  /// All but the busy time.
  [[nodiscard]] Seconds idle() const { return warm_up + receive + send + other + drain + tail; }
  /// The makespan.
  [[nodiscard]] Seconds whole() const { return busy + idle(); }
  /// Idle share of the whole; zero where there is no time at all.
  [[nodiscard]] double bubble_ratio() const { return whole() > 0 ? idle() / whole() : 0; }

  /// Adds the times of another rank.
  RankTime& operator+=(const RankTime& more);
};

/// The times of all ranks of one timeline. Where no rank works in two lanes at once, the bubble
/// ratio of their sum is the timeline's.
struct TimeUse {
  Seconds makespan = 0;         ///< the same for all ranks
  std::vector<RankTime> ranks;  ///< in their order

  /// Of all ranks.
  [[nodiscard]] RankTime sum() const;
  /// Idle share of all ranks together.
  [[nodiscard]] double bubble_ratio() const { return sum().bubble_ratio(); }
};

/// What bubble_report() found. `theory` is the ratio of a closed form, such as
/// schedule::bubble_ratio().
struct BubbleReport {
  std::string name;                       ///< of the schedule
  std::optional<double> theory = {};      ///< ratio of a closed form
  std::optional<TimeUse> simulated = {};  ///< from the predicted timeline
  std::optional<TimeUse> measured = {};   ///< from the measured one
};

/// Where the time of a simulated or measured timeline goes.
[[nodiscard]] TimeUse time_use(const Timeline& timeline);

/// Simulated beside measured, and the closed form where one is known. The two timelines may be of
/// schedules that differ.
[[nodiscard]] BubbleReport bubble_report(const Timeline& simulated, const Timeline& measured,
                                         std::optional<double> theory = {});

/// A simulated timeline alone.
[[nodiscard]] BubbleReport bubble_report(const Timeline& simulated,
                                         std::optional<double> theory = {});

/// The report as a table: ratios and makespans, then a block of lines per rank. All times have the
/// unit of the longest makespan.
[[nodiscard]] std::string to_string(const BubbleReport& report);

/// As to_string.
std::ostream& operator<<(std::ostream& out, const BubbleReport& report);

}  // namespace heddle::inline v0::trace

#if HEDDLE_HEADER_ONLY
#include <heddle/trace/report.ipp>
#endif
