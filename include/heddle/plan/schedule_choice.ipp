// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// Definitions of schedule_choice.hpp.

#include <algorithm>
#include <cstddef>
#include <limits>
#include <span>
#include <utility>
#include <vector>

#include <heddle/core/contract.hpp>
#include <heddle/core/error.hpp>
#include <heddle/core/linkage.hpp>
#include <heddle/core/text.hpp>
#include <heddle/core/units.hpp>
#include <heddle/plan/observed_costs.hpp>
#include <heddle/plan/schedule_choice.hpp>
#include <heddle/schedule/fold.hpp>
#include <heddle/schedule/schedule.hpp>
#include <heddle/simulate/simulate.hpp>

namespace heddle::inline v0::plan {

HEDDLE_INLINE ScheduleChoice::ScheduleChoice(std::vector<Schedule> candidates, Bytes memory)
    : m_candidates(std::move(candidates)), m_memory(memory) {
  expects(!m_candidates.empty(), [] {
    return ErrorInfo{where, "there is no candidate to choose from"};
  });
  for (const Schedule& candidate : m_candidates) {
    expects(candidate.ranks() == m_candidates.front().ranks(), [&] {
      return ErrorInfo{
          where, "the candidates are for different numbers of ranks",
          text("'", m_candidates.front().name(), "' has ", m_candidates.front().ranks(), ", '",
               candidate.name(), "' has ", candidate.ranks())};
    });
    m_needs.push_back(need(schedule::fold(candidate)));
  }
  m_times.resize(m_candidates.size());
  choose();
}

HEDDLE_INLINE bool ScheduleChoice::observe(const Timeline& step) {
  m_costs.observe(step);
  for (std::size_t c = 0; c < m_candidates.size(); ++c) {
    simulate(m_candidates[c], m_costs, m_simulated);
    m_times[c] = m_simulated.makespan();
  }
  return choose();
}

HEDDLE_INLINE bool ScheduleChoice::as_run(std::span<const Schedule> candidates) {
  expects(candidates.size() == m_candidates.size(), [&] {
    return ErrorInfo{where, "every candidate needs one schedule to size it",
                     text(candidates.size(), " schedules, ", m_candidates.size(), " candidates")};
  });
  for (std::size_t c = 0; c < candidates.size(); ++c) m_needs[c] = need(candidates[c]);
  return choose();
}

HEDDLE_INLINE bool ScheduleChoice::limit(Bytes memory) {
  const Bytes before = std::exchange(m_memory, memory);
  try {
    return choose();
  } catch (const infeasible&) {
    m_memory = before;
    throw;
  }
}

HEDDLE_INLINE Bytes ScheduleChoice::need(const Schedule& folded) {
  std::vector<Bytes> ranks(static_cast<std::size_t>(folded.ranks()), 0);
  for (const Buffer& buffer : folded.buffers())
    if (buffer.transient) ranks[+buffer.rank] += buffer.bytes;
  return *std::max_element(ranks.begin(), ranks.end());
}

HEDDLE_INLINE bool ScheduleChoice::choose() {
  Seconds best = std::numeric_limits<Seconds>::infinity();
  for (std::size_t c = 0; c < m_times.size(); ++c)
    if (fits(c)) best = std::min(best, m_times[c]);
  std::size_t wanted = 0;
  while (wanted < m_times.size() && !(fits(wanted) && m_times[wanted] <= best * (1 + gain / 2)))
    ++wanted;
  if (wanted == m_times.size())
    throw infeasible({where, "no candidate fits the memory",
                      text("a rank has ", m_memory, " bytes, the least need is ",
                           *std::min_element(m_needs.begin(), m_needs.end())),
                      "add a candidate that needs less memory, or raise the limit"});
  const bool changes =
      !fits(m_current) || wanted < m_current || m_times[m_current] > (1 + gain) * m_times[wanted];
  return changes && std::exchange(m_current, wanted) != wanted;
}

}  // namespace heddle::inline v0::plan
