// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// ObservedCosts: learns the times of actions and transfers from measured steps while a program
/// runs. They price any Schedule of the same stages and ranks, in order to choose the one to run
/// next.

#include <algorithm>
#include <cstddef>
#include <map>
#include <utility>
#include <vector>

#include <heddle/core/error.hpp>
#include <heddle/core/index.hpp>
#include <heddle/core/linkage.hpp>
#include <heddle/core/units.hpp>
#include <heddle/schedule/schedule.hpp>
#include <heddle/schedule/timeline.hpp>
#include <heddle/simulate/costs.hpp>

namespace heddle::inline v0::plan {

/// A cost per (kind, stage) and a time per message between two stages. Each is smoothed over the
/// observed steps, new = weight * seen + (1 - weight) * old, and is zero if it was never seen.
/// Costs belong to stages and not to ranks, so the times of the replicas of a pipeline price the
/// pipeline.
///
/// A step gives the median of the durations of an action. A transfer counts only if its receiver
/// waited for it, because otherwise it may have arrived long before; the first transfer to a rank
/// always counts. The time of a pair of stages is the mean of both directions, because an offset
/// between their clocks adds to one direction and subtracts from the other.
class ObservedCosts {
 public:
  using Time = Seconds;  ///< the type of costs

  /// The weight of a new step; all steps before have 1 - weight. Half of a change is learned from
  /// the first step that shows it, and a single outlier is forgotten equally fast.
  static constexpr double weight = 0.5;

  /// Learns from a measured step. The clocks of two ranks may differ, so the time of a transfer may
  /// be negative.
  /// @throws contract_error if the duration of an action is negative, infinite or undefined, or if
  ///         that of a transfer is not finite; then nothing is learned from the step.
  void observe(const Timeline& step);

  /// Returns the cost of an action that is not a move.
  [[nodiscard]] Seconds time(const Schedule& schedule, ActionId id) const {
    const std::size_t at = index(schedule[id]);
    return at < m_actions.size() ? std::max(m_actions[at], 0.0) : 0;
  }
  /// Returns the cost of a move. It is all occupancy, because a link carries one message after
  /// another.
  [[nodiscard]] Transfer<Seconds> transfer(const Schedule& schedule, ActionId id) const;
  /// Returns the time of one message between two stages, in either direction.
  [[nodiscard]] Seconds between(Stage a, Stage b) const;

 private:
  using Pair = std::pair<Stage, Stage>;
  static constexpr Seconds unseen = -1;

  [[nodiscard]] static ErrorInfo no_time(const Schedule& schedule, ActionId id, Seconds took);

  /// Returns the stages whose buffers a move reads and writes.
  [[nodiscard]] static Pair ends(const Schedule& schedule, ActionId move);

  [[nodiscard]] static std::size_t index(const Action& action) {
    return +action.stage * kind_count + static_cast<std::size_t>(action.kind);
  }

  static void learn(Seconds& old, Seconds seen);

  void learn_links(std::map<Pair, std::vector<Seconds>>& transfers);

  std::vector<Seconds> m_actions;
  std::map<Pair, Seconds> m_links;
};

}  // namespace heddle::inline v0::plan

#if HEDDLE_DEFINES_PLAN
#include <heddle/plan/observed_costs.ipp>
#endif
