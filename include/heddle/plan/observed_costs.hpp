// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// ObservedCosts: what actions and transfers take, learned from measured steps while a program
/// runs. Prices any Schedule of the same stages and ranks, for deciding which to run next.

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

namespace heddle::inline v0 {

/// A cost per (kind, stage) and a time per message between two stages, each smoothed over the steps
/// that were observed: new = weight * seen + (1 - weight) * old. Zero for what was never seen. By
/// stages and not by ranks, so that what replicas of a pipeline took prices the pipeline.
///
/// What a step shows of an action is the median of its durations. A transfer shows only where its
/// receiver waited for it, for else it may have been there long before it was looked for; the first
/// one to a rank counts in any case. What is kept is the mean of both directions of a pair of
/// stages: what is left of a difference between their clocks adds to one what it takes from the
/// other.
class ObservedCosts {
 public:
  using Time = Seconds;  ///< what costs are in

  /// What a step counts for beside all those before: a change is half learned from the first step
  /// that shows it, and a single outlier is forgotten as fast.
  static constexpr double weight = 0.5;

  /// Learns from a measured step. Clocks of two ranks may differ, so a transfer may seem to take
  /// less than no time.
  /// @throws contract_error for an action of a negative, infinite or undefined duration, or such a
  ///         transfer that is not finite; then nothing is learned from the step.
  void observe(const Timeline& step);

  /// The cost of an action that is not a move.
  [[nodiscard]] Seconds time(const Schedule& schedule, ActionId id) const {
    const std::size_t at = index(schedule[id]);
    return at < m_actions.size() ? std::max(m_actions[at], 0.0) : 0;
  }
  /// The cost of a move, all of it occupancy: a link carries one message after another.
  [[nodiscard]] Transfer<Seconds> transfer(const Schedule& schedule, ActionId id) const;
  /// The time of one message between two stages, in either direction.
  [[nodiscard]] Seconds between(Stage a, Stage b) const;

 private:
  using Pair = std::pair<Stage, Stage>;
  static constexpr Seconds unseen = -1;

  [[nodiscard]] static Complaint no_time(const Schedule& schedule, ActionId id, Seconds took);

  /// The stages whose buffers a move reads and writes.
  [[nodiscard]] static Pair ends(const Schedule& schedule, ActionId move);

  [[nodiscard]] static std::size_t index(const Action& action) {
    return +action.stage * kind_count + static_cast<std::size_t>(action.kind);
  }

  [[nodiscard]] static Seconds median(std::vector<Seconds>& values);

  static void learn(Seconds& old, Seconds seen);

  void learn_links(std::map<Pair, std::vector<Seconds>>& transfers);

  std::vector<Seconds> m_actions;
  std::map<Pair, Seconds> m_links;
};

}  // namespace heddle::inline v0

#if HEDDLE_HEADER_ONLY
#include <heddle/plan/observed_costs.ipp>
#endif
