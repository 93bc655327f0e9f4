// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// ObservedCosts: what actions and transfers take, learned from measured steps while a program
/// runs. Prices any Schedule of the same stages and ranks, for deciding which to run next.

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <limits>
#include <map>
#include <utility>
#include <vector>

#include <heddle/core/contract.hpp>
#include <heddle/core/index.hpp>
#include <heddle/core/units.hpp>
#include <heddle/schedule/action_text.hpp>
#include <heddle/schedule/impl/is_time.hpp>
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
  void observe(const Timeline& step) {
    const Schedule& schedule = step.schedule();
    std::map<std::size_t, std::vector<Seconds>> actions;
    std::map<Pair, std::vector<Seconds>> transfers;
    std::vector<Seconds> worked(static_cast<std::size_t>(schedule.ranks()),
                                std::numeric_limits<Seconds>::lowest());  // until then, each rank
    std::vector<bool> awaited(schedule.size(), false);  // somebody has waited for this move
    for (std::size_t i = 0; i < schedule.size(); ++i) {
      const ActionId id{i};
      const Action& action = schedule[id];
      if (action.kind == Kind::move) continue;
      const Rank rank = schedule[action.queue].from;
      for (const After& after : schedule.after(id)) {
        const Action& on = schedule[ActionId{after.action}];
        const Queue& queue = schedule[on.queue];
        if (on.kind != Kind::move || queue.local() || queue.to != rank || awaited[after.action])
          continue;
        awaited[after.action] = true;
        const auto& span = step[ActionId{after.action}];
        // A tenth of it: looking whether a message is there takes some time, too.
        const Seconds took = span.arrival - span.start;
        expects(std::isfinite(took),
                [&] { return no_time(schedule, ActionId{after.action}, took); });
        if (span.arrival - worked[+rank] > took / 10)
          transfers[ends(schedule, ActionId{after.action})].push_back(took);
      }
      const Seconds took = step[id].end - step[id].start;
      expects(heddle::impl::is_time(took), [&] { return no_time(schedule, id, took); });
      actions[index(action)].push_back(took);
      worked[+rank] = std::max(worked[+rank], step[id].end);
    }
    for (auto& [at, durations] : actions) {
      if (at >= m_actions.size()) m_actions.resize(at + 1, unseen);
      learn(m_actions[at], median(durations));
    }
    learn_links(transfers);
  }

  /// The cost of an action that is not a move.
  [[nodiscard]] Seconds time(const Schedule& schedule, ActionId id) const {
    const std::size_t at = index(schedule[id]);
    return at < m_actions.size() ? std::max(m_actions[at], 0.0) : 0;
  }
  /// The cost of a move, all of it occupancy: a link carries one message after another.
  [[nodiscard]] Transfer<Seconds> transfer(const Schedule& schedule, ActionId id) const {
    const auto [from, to] = ends(schedule, id);
    return {between(from, to), 0};
  }
  /// The time of one message between two stages, in either direction.
  [[nodiscard]] Seconds between(Stage a, Stage b) const {
    const auto link = m_links.find(std::minmax(a, b));
    return link == m_links.end() ? 0 : link->second;
  }

 private:
  using Pair = std::pair<Stage, Stage>;
  static constexpr Seconds unseen = -1;

  [[nodiscard]] static Complaint no_time(const Schedule& schedule, ActionId id, Seconds took) {
    return heddle::impl::no_time("heddle::ObservedCosts::observe",
                                 "duration of " + action_text(schedule, id), took);
  }

  /// The stages whose buffers a move reads and writes.
  [[nodiscard]] static Pair ends(const Schedule& schedule, ActionId move) {
    const auto uses = schedule.uses(move);
    return {schedule[uses[0].buffer].stage, schedule[uses[1].buffer].stage};
  }

  [[nodiscard]] static std::size_t index(const Action& action) {
    return +action.stage * kind_count + static_cast<std::size_t>(action.kind);
  }

  [[nodiscard]] static Seconds median(std::vector<Seconds>& values) {
    const auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
    std::nth_element(values.begin(), middle, values.end());
    return *middle;
  }

  static void learn(Seconds& old, Seconds seen) {
    old = old == unseen ? seen : weight * seen + (1 - weight) * old;
  }

  void learn_links(std::map<Pair, std::vector<Seconds>>& transfers) {
    std::map<Pair, std::vector<Seconds>> ways;
    for (auto& [way, times] : transfers)
      ways[std::minmax(way.first, way.second)].push_back(median(times));
    for (const auto& [pair, times] : ways) {
      const Seconds mean = (times.front() + times.back()) / 2;
      learn(m_links.try_emplace(pair, unseen).first->second, std::max(mean, 0.0));
    }
  }

  std::vector<Seconds> m_actions;
  std::map<Pair, Seconds> m_links;
};
static_assert(Costs<ObservedCosts>);

}  // namespace heddle::inline v0
