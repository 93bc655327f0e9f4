// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// Definitions of observed_costs.hpp.

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <limits>
#include <map>
#include <vector>

#include <heddle/core/contract.hpp>
#include <heddle/core/index.hpp>
#include <heddle/core/internal/quantile.hpp>
#include <heddle/core/linkage.hpp>
#include <heddle/core/units.hpp>
#include <heddle/plan/observed_costs.hpp>
#include <heddle/schedule/action_text.hpp>
#include <heddle/schedule/internal/is_time.hpp>
#include <heddle/schedule/timeline.hpp>
#include <heddle/simulate/costs.hpp>

namespace heddle::inline v0 {

static_assert(Costs<plan::ObservedCosts>);

namespace plan {

HEDDLE_INLINE void ObservedCosts::observe(const Timeline& step) {
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
      // A tenth of the time is the threshold, because a test for a message takes some time, too.
      const Seconds took = span.arrival - span.start;
      expects(std::isfinite(took), [&] { return no_time(schedule, ActionId{after.action}, took); });
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
    learn(m_actions[at], heddle::impl::median(durations));
  }
  learn_links(transfers);
}

HEDDLE_INLINE Transfer<Seconds> ObservedCosts::transfer(const Schedule& schedule,
                                                        ActionId id) const {
  const auto [from, to] = ends(schedule, id);
  return {between(from, to), 0};
}

HEDDLE_INLINE Seconds ObservedCosts::between(Stage a, Stage b) const {
  const auto link = m_links.find(std::minmax(a, b));
  return link == m_links.end() ? 0 : link->second;
}

HEDDLE_INLINE ErrorInfo ObservedCosts::no_time(const Schedule& schedule, ActionId id,
                                               Seconds took) {
  return heddle::impl::no_time("heddle::plan::ObservedCosts::observe",
                               "duration of " + schedule::action_text(schedule, id), took);
}

HEDDLE_INLINE ObservedCosts::Pair ObservedCosts::ends(const Schedule& schedule, ActionId move) {
  const auto uses = schedule.uses(move);
  return {schedule[uses[0].buffer].stage, schedule[uses[1].buffer].stage};
}

HEDDLE_INLINE void ObservedCosts::learn(Seconds& old, Seconds seen) {
  old = old == unseen ? seen : weight * seen + (1 - weight) * old;
}

HEDDLE_INLINE void ObservedCosts::learn_links(std::map<Pair, std::vector<Seconds>>& transfers) {
  std::map<Pair, std::vector<Seconds>> ways;
  for (auto& [way, times] : transfers)
    ways[std::minmax(way.first, way.second)].push_back(heddle::impl::median(times));
  for (const auto& [pair, times] : ways) {
    const Seconds mean = (times.front() + times.back()) / 2;
    learn(m_links.try_emplace(pair, unseen).first->second, std::max(mean, 0.0));
  }
}

}  // namespace plan

}  // namespace heddle::inline v0
