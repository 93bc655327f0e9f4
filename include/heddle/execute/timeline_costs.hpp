// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// TimelineCosts: the costs of a Schedule from a Timeline of it, such as that of a Trail.

#include <utility>

#include <heddle/core/units.hpp>
#include <heddle/schedule/schedule.hpp>
#include <heddle/schedule/timeline.hpp>
#include <heddle/simulate/costs.hpp>

namespace heddle::inline v0 {

/// The costs of a Schedule by the spans of a Timeline of it: the time from the start to the end of
/// each action, and for a move the time to its arrival as latency. It models Costs.
class TimelineCosts {
 public:
  using Time = Seconds;  ///< the type of costs

  /// Takes the costs from a timeline.
  explicit TimelineCosts(Timeline timeline) : m_timeline(std::move(timeline)) {}

  /// Returns the time of an action that is not a move.
  [[nodiscard]] Seconds time(const Schedule&, ActionId id) const {
    return m_timeline[id].end - m_timeline[id].start;
  }
  /// Returns the time of a move.
  [[nodiscard]] Transfer<Seconds> transfer(const Schedule&, ActionId id) const {
    return {m_timeline[id].end - m_timeline[id].start, m_timeline[id].arrival - m_timeline[id].end};
  }

 private:
  Timeline m_timeline;
};
static_assert(Costs<TimelineCosts>);

}  // namespace heddle::inline v0
