// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// StepTimes: the times of one step that a Monitor counts.

#include <cstddef>
#include <vector>

#include <heddle/core/index.hpp>
#include <heddle/core/linkage.hpp>
#include <heddle/core/units.hpp>
#include <heddle/schedule/timeline.hpp>

namespace heddle::inline v0::impl {

/// The measured and the planned times of one pair of ranks, or of one rank, in one step.
struct TimeSum {
  double measured = 0, planned = 0;
};

/// The transfers and computations of one step that count by the rules of Monitor.
class StepTimes {
 public:
  /// Both timelines are of one schedule, of at most `ranks` ranks.
  StepTimes(const Timeline& measured, const Timeline& planned, int ranks);

  /// Returns the times of transfers, at [source * ranks + destination].
  [[nodiscard]] const std::vector<TimeSum>& transfers() const noexcept { return m_transfers; }
  /// Returns the times of computations, by rank.
  [[nodiscard]] const std::vector<TimeSum>& computes() const noexcept { return m_computes; }

 private:
  /// Counts a move between ranks that its receiver waits for now.
  void await(ActionId move);

  const Timeline& m_measured;
  const Timeline& m_planned;
  std::vector<TimeSum> m_transfers;
  std::vector<TimeSum> m_computes;
  std::vector<std::size_t> m_before;       ///< by action: the move before it in its queue
  std::vector<Seconds> m_worked;           ///< by rank: when its computations so far had ended
  std::vector<bool> m_awaited, m_watched;  ///< by move: whether anybody waits, and saw it arrive
};

}  // namespace heddle::inline v0::impl

#if HEDDLE_DEFINES_SCHEDULE
#include <heddle/schedule/impl/step_times.ipp>
#endif
