// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// The bubble report: how every rank spends its time, in theory, as simulated and as measured.

#include <iosfwd>
#include <optional>
#include <string>
#include <vector>

#include <heddle/core/linkage.hpp>
#include <heddle/core/units.hpp>
#include <heddle/schedule/timeline.hpp>

namespace heddle::inline v0::trace {

/// The times of all ranks of one timeline. If no rank works in two lanes at once, the bubble ratio
/// of their sum is that of the timeline.
struct TimeUse {
  /// How one rank spends the makespan of a timeline. The seven times add up to the makespan.
  /// `warm_up`, `drain` and `tail` follow from the shape of the schedule. Any other gap is
  /// attributed to the last event that the work after the gap waited for.
  struct RankTime {
    Seconds busy = 0;     ///< at least one lane does the model's work (is_work)
    Seconds warm_up = 0;  ///< before the first work
    Seconds receive = 0;  ///< waiting for the arrival of a message
    Seconds send = 0;     ///< waiting for a message to leave, so that its storage is free
    Seconds other = 0;    ///< any other gap
    Seconds drain = 0;    ///< gaps between the last forward and the last backward
    Seconds tail =
        0;  ///< after the last work except updates: sums of gradients, waiting for other ranks

    /// Returns the sum of all times except the busy time.
    [[nodiscard]] Seconds idle() const { return warm_up + receive + send + other + drain + tail; }
    /// Returns the makespan.
    [[nodiscard]] Seconds whole() const { return busy + idle(); }
    /// Returns the idle share of the makespan, or zero if the makespan is zero.
    [[nodiscard]] double bubble_ratio() const { return whole() > 0 ? idle() / whole() : 0; }

    /// Adds the times of another rank.
    RankTime& operator+=(const RankTime& more);
  };

  Seconds makespan = 0;         ///< the same for all ranks
  std::vector<RankTime> ranks;  ///< by rank

  /// Returns the sum over all ranks.
  [[nodiscard]] RankTime sum() const;
  /// Returns the idle share of all ranks together.
  [[nodiscard]] double bubble_ratio() const { return sum().bubble_ratio(); }
};

/// The result of bubble_report(). `theory` is the bubble ratio of a closed form, such as
/// schedule::bubble_ratio().
struct BubbleReport {
  std::string name;                       ///< the name of the schedule
  std::optional<double> theory = {};      ///< ratio of a closed form
  std::optional<TimeUse> simulated = {};  ///< from the predicted timeline
  std::optional<TimeUse> measured = {};   ///< from the measured one
};

/// Returns how the ranks spend the time of a simulated or measured timeline.
/// @throws contract_error if the timeline does not fit its schedule, or if a time is not finite.
[[nodiscard]] TimeUse time_use(const Timeline& timeline);

/// Compares a simulated and a measured timeline, and the closed form if it is given. The two
/// timelines may have different schedules.
[[nodiscard]] BubbleReport bubble_report(const Timeline& simulated, const Timeline& measured,
                                         std::optional<double> theory = {});

/// Returns the report of a simulated timeline alone.
[[nodiscard]] BubbleReport bubble_report(const Timeline& simulated,
                                         std::optional<double> theory = {});

/// Returns the report as a table: ratios and makespans, then a block of lines per rank. All times
/// have the unit of the longest makespan.
[[nodiscard]] std::string to_string(const BubbleReport& report);

/// Prints to_string(report).
std::ostream& operator<<(std::ostream& out, const BubbleReport& report);

}  // namespace heddle::inline v0::trace

#if HEDDLE_DEFINES_TRACE
#include <heddle/trace/report.ipp>
#endif
