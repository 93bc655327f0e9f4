// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// Definitions of search_watch.hpp.

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <string_view>

#include <heddle/core/linkage.hpp>
#include <heddle/core/units.hpp>
#include <heddle/plan/internal/search_watch.hpp>

namespace heddle::inline v0::plan::impl {

/// The seconds that a step is taken for.
inline constexpr Seconds watched_step = 1e-8;

HEDDLE_INLINE SearchWatch::SearchWatch(const PlanProblem& problem, std::string_view planner)
    : m_problem(&problem),
      m_progress{.planner = planner},
      m_part(problem.options().budget.steps),
      m_most_bytes(problem.options().budget.bytes),
      m_timed(std::isfinite(problem.options().budget.seconds) || problem.options().progress) {
  if (m_timed) m_begin = m_called = steady_seconds();
  m_part_deadline = m_deadline = m_begin + problem.options().budget.seconds;
  set_next();
}

HEDDLE_INLINE void SearchWatch::set_next() noexcept {
  constexpr std::uint64_t between = 100'000;  // steps, about 1 ms
  m_next = m_timed ? std::min(m_part, m_steps + between) : m_part;
}

HEDDLE_INLINE bool SearchWatch::look() {
  constexpr Seconds pause = 0.1;
  if (m_steps >= m_part || m_stopped) return end();
  if (m_timed) {
    const Seconds now = steady_seconds();
    if (now >= m_part_deadline) return end();
    if (const auto& progress = m_problem->options().progress; progress && now >= m_called + pause) {
      m_called = now;
      m_stopped = !progress(m_progress);
      if (m_stopped) return end();
    }
  }
  set_next();
  return m_ended;
}

HEDDLE_INLINE void SearchWatch::begin_part(std::size_t parts) {
  const std::uint64_t all = m_problem->options().budget.steps;
  m_part = m_steps + (all - std::min(all, m_steps)) / parts;
  if (std::isfinite(m_deadline)) {
    const Seconds now = steady_seconds();
    m_part_deadline = now + (m_deadline - now) / static_cast<double>(parts);
  }
  m_bytes = 0;
  m_ended = false;
  set_next();
  look();
}

HEDDLE_INLINE double SearchWatch::left() const {
  const double steps = m_part > m_steps ? static_cast<double>(m_part - m_steps) : 0;
  if (!std::isfinite(m_part_deadline)) return steps;
  return std::clamp((m_part_deadline - steady_seconds()) / watched_step, 0.0, steps);
}

HEDDLE_INLINE bool SearchWatch::enough(double steps, double bytes) const {
  return !m_ended && steps <= left() &&
         bytes + static_cast<double>(m_bytes) <= static_cast<double>(m_most_bytes);
}

}  // namespace heddle::inline v0::plan::impl
