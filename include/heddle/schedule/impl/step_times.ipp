// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// Definitions of step_times.hpp.

#include <algorithm>
#include <cstddef>
#include <limits>
#include <utility>
#include <vector>

#include <heddle/core/index.hpp>
#include <heddle/core/linkage.hpp>
#include <heddle/schedule/impl/ranks_of.hpp>
#include <heddle/schedule/impl/step_times.hpp>
#include <heddle/schedule/schedule.hpp>
#include <heddle/schedule/timeline.hpp>

namespace heddle::inline v0::impl {

/// Returns when the storage of a move is free at the destination.
[[nodiscard]] inline Seconds storage_free(const Timeline& step, ActionId move) {
  Seconds free = std::numeric_limits<Seconds>::lowest();
  for (const After& after : step.schedule().after(move)) {
    if (!after.mine) continue;
    const Span& on = step[ActionId{after.action}];
    free = std::max(free, after.end ? on.arrival : on.end);
  }
  return free;
}

/// Stands for no action.
inline constexpr std::size_t no_move = std::numeric_limits<std::size_t>::max();

/// Returns, by action, the move before it in its queue, or no_move.
[[nodiscard]] inline std::vector<std::size_t> moves_before(const Schedule& schedule) {
  std::vector<std::size_t> last(schedule.queues().size(), no_move);
  std::vector<std::size_t> before(schedule.size(), no_move);
  for (std::size_t i = 0; i < schedule.size(); ++i) {
    const Action& action = schedule[ActionId{i}];
    if (action.kind == Kind::move) before[i] = std::exchange(last[+action.queue], i);
  }
  return before;
}

HEDDLE_INLINE StepTimes::StepTimes(const Timeline& measured, const Timeline& planned, int ranks)
    : m_measured(measured),
      m_planned(planned),
      m_transfers(static_cast<std::size_t>(ranks) * static_cast<std::size_t>(ranks)),
      m_computes(static_cast<std::size_t>(ranks)),
      m_before(moves_before(measured.schedule())),
      m_worked(static_cast<std::size_t>(ranks), std::numeric_limits<Seconds>::lowest()),
      m_awaited(measured.schedule().size(), false),
      m_watched(measured.schedule().size(), false) {
  const Schedule& schedule = measured.schedule();
  for (std::size_t i = 0; i < schedule.size(); ++i) {
    const ActionId id{i};
    const Rank rank = schedule[schedule[id].queue].from;
    const std::vector<Rank> members = ranks_of(schedule, id);
    for (const After& after : schedule.after(id)) {
      const ActionId on{after.action};
      const Queue& queue = schedule[schedule[on].queue];
      if (schedule[on].kind == Kind::move && !queue.local() && !after.mine && !m_awaited[+on] &&
          std::ranges::find(members, queue.to) != members.end())
        await(on);
    }
    if (schedule[id].kind == Kind::move) continue;
    const Span& seen = m_measured[id];
    for (const Rank member : members) m_worked[+member] = std::max(m_worked[+member], seen.end);
    const Seconds expected = m_planned[id].end - m_planned[id].start;
    if (schedule[id].kind == Kind::group || !(expected > 0)) continue;
    m_computes[+rank].measured += seen.end - seen.start;
    m_computes[+rank].planned += expected;
  }
  for (std::size_t i = 0; i < schedule.size(); ++i) {
    const Action& action = schedule[ActionId{i}];
    if (action.kind == Kind::move && !schedule[action.queue].local() && !m_awaited[i])
      await(ActionId{i});
  }
}

HEDDLE_INLINE void StepTimes::await(ActionId move) {
  const Schedule& schedule = m_measured.schedule();
  m_awaited[+move] = true;
  const Queue& queue = schedule[schedule[move].queue];
  const Span& seen = m_measured[move];
  const Span& plan = m_planned[move];
  Seconds took = seen.arrival - seen.start, expected = plan.arrival - plan.start;
  bool known = true;
  if (const std::size_t last = m_before[+move]; last != no_move) {
    // The message before it occupied the link until its arrival, less its latency. Of a slowness
    // that is the same for both, the smaller quotient is the true one.
    const Seconds since = seen.arrival - m_measured[ActionId{last}].arrival;
    const Seconds alone = plan.end - plan.start;  // the time for which it occupies the link
    if (alone > 0 && since >= 0 && since * expected < took * alone) {
      took = since;
      expected = alone;
      known = m_watched[last];
    }
  }
  const Seconds free = storage_free(m_measured, move);
  m_watched[+move] = seen.arrival - std::max(m_worked[+queue.to], free) > took / 10;
  // If its storage was free late, nobody knows whether it has come before that.
  if (!(expected > 0) || !known || !m_watched[+move] || free > seen.arrival - 0.9 * took) return;
  if (!(plan.arrival > storage_free(m_planned, move))) return;  // the plan waits for storage
  TimeSum& sum = m_transfers[+queue.from * m_computes.size() + +queue.to];
  sum.measured += took;
  sum.planned += expected;
}

}  // namespace heddle::inline v0::impl
