// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// SearchWatch: what a planner has spent of its budget.

#include <cstddef>
#include <cstdint>
#include <limits>
#include <string_view>

#include <heddle/core/linkage.hpp>
#include <heddle/core/units.hpp>
#include <heddle/plan/found_plan.hpp>
#include <heddle/plan/plan_problem.hpp>

namespace heddle::inline v0::plan::impl {

/// Counts the steps and bytes of a planner, and looks at the clock now and then. The loops of a
/// planner call spend() and end when it returns true.
class SearchWatch {
 public:
  /// The problem outlives the object. `planner` is the name for PlanOptions::progress.
  SearchWatch(const PlanProblem& problem, std::string_view planner);

  /// Spends steps of about 10 ns. Returns true if the search, or its part, is to end.
  bool spend(std::uint64_t steps) {
    m_steps += steps;
    return m_steps >= m_next ? look() : m_ended;
  }
  /// Counts bytes of tables. Returns as spend().
  bool hold(Bytes bytes) {
    m_bytes += bytes;
    return m_bytes > m_most_bytes ? end() : m_ended;
  }
  /// Counts tables as released.
  void release() noexcept { m_bytes = 0; }

  /// Begins a part of the search, which may spend an equal share of what is left for `parts` parts.
  /// It has no tables yet.
  void begin_part(std::size_t parts);
  /// Returns true if the part has ended early.
  [[nodiscard]] bool ended() const noexcept { return m_ended; }
  /// Returns whether so many steps and bytes are left for the part, if a step takes 10 ns.
  [[nodiscard]] bool enough(double steps, double bytes = 0) const;
  /// Returns the steps that are left for the part, if a step takes 10 ns.
  [[nodiscard]] double left() const;

  /// Notes what the progress is to say.
  void note(std::size_t candidates, Seconds best) noexcept {
    m_progress.candidates = candidates;
    m_progress.best = best;
  }
  /// Returns how the search has ended so far.
  [[nodiscard]] SearchEnd result() const noexcept {
    return m_cut_off ? SearchEnd::cut_off : SearchEnd::complete;
  }
  /// Notes that a limit other than the budget has ended a part of the search.
  void cut_off() noexcept { m_cut_off = true; }

 private:
  bool look();
  bool end() noexcept {
    m_ended = m_cut_off = true;
    return true;
  }
  void set_next() noexcept;

  const PlanProblem* m_problem;
  PlanProgress m_progress;
  std::uint64_t m_steps = 0, m_next = 0;  ///< spent, and when to look next
  std::uint64_t m_part = 0;               ///< steps at which the part ends
  Bytes m_bytes = 0, m_most_bytes = 0;
  Seconds m_begin = 0, m_called = 0;  ///< the times of the begin and of the last progress
  /// The ends of the search and of its part.
  Seconds m_deadline = std::numeric_limits<Seconds>::infinity(), m_part_deadline = m_deadline;
  bool m_timed = false;  ///< whether time matters
  bool m_ended = false, m_stopped = false, m_cut_off = false;
};

}  // namespace heddle::inline v0::plan::impl

#if HEDDLE_DEFINES_PLAN
#include <heddle/plan/internal/search_watch.ipp>
#endif
