// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// ScheduleChoice: chooses which of several Schedules of the same work to run next. It decides
/// again after each measured step and when the available memory changes. AdaptiveRunner (execute/)
/// runs its choice.

#include <cstddef>
#include <limits>
#include <span>
#include <vector>

#include <heddle/core/linkage.hpp>
#include <heddle/core/units.hpp>
#include <heddle/plan/observed_costs.hpp>
#include <heddle/schedule/schedule.hpp>
#include <heddle/schedule/timeline.hpp>

namespace heddle::inline v0::plan {

/// A choice among several candidates, such as 1F1B in groups of 1, 2 and 4 microbatches. Candidates
/// are given in the order of preference; put the one with the least memory first.
///
/// After a measured step every candidate that fits is simulated at the observed costs. The wanted
/// candidate is the first that is predicted to take at most gain / 2 longer than the fastest. It
/// becomes the choice if the present choice no longer fits, comes later in the order, or is
/// predicted to take more than `gain` longer. Between the two thresholds nothing changes, so noise
/// does not swing the choice to and fro. When a link is free again, the choice returns to the first
/// candidate.
///
/// The method follows Wang et al., "Ada-Grouper: Accelerating pipeline parallelism in preempted
/// network by adaptive group-scheduling for micro-batches" (2023), which measures transfers and
/// prices plans while it trains. The hysteresis is an addition. The choice is deterministic: the
/// same steps give the same choice on every rank.
class ScheduleChoice {
 public:
  /// The hysteresis. A later candidate replaces the present choice if the choice is predicted to
  /// take more than this share longer than the wanted candidate. The wanted candidate may take half
  /// of this share longer than the fastest.
  static constexpr double gain = 0.02;

  /// Constructs a choice among `candidates`. A candidate fits if schedule::fold() needs at most
  /// `memory` bytes on every rank, as far as it knows the sizes of its buffers; see as_run(). The
  /// first choice is the first candidate that fits, because no costs are known yet.
  /// @throws contract_error if there are no candidates, or if their numbers of ranks differ.
  /// @throws infeasible if no candidate fits.
  explicit ScheduleChoice(std::vector<Schedule> candidates,
                          Bytes memory = std::numeric_limits<Bytes>::max());

  /// Returns the Schedule to run.
  [[nodiscard]] const Schedule& schedule() const noexcept { return m_candidates[m_current]; }
  /// Returns its number among the candidates.
  [[nodiscard]] std::size_t current() const noexcept { return m_current; }
  /// Returns the candidates in the given order.
  [[nodiscard]] const std::vector<Schedule>& candidates() const noexcept { return m_candidates; }

  /// Learns from a measured step of any candidate. Returns true if the choice changes.
  bool observe(const Timeline& step);

  /// Updates the memory needs from the candidates in the form in which they run: folded, and with
  /// the sizes of all buffers, which may be known only to the model (see prepare_schedule()).
  /// Returns true if the choice changes.
  /// @throws contract_error if their number differs from that of the candidates.
  /// @throws infeasible if no candidate fits.
  bool as_run(std::span<const Schedule> candidates);

  /// Sets the transient storage of a rank to `memory` bytes. Returns true if the choice changes.
  /// @throws infeasible if no candidate fits; then the limit and the choice do not change.
  bool limit(Bytes memory);

  /// Returns the observed costs.
  [[nodiscard]] const ObservedCosts& costs() const noexcept { return m_costs; }
  /// Returns the predicted time of each candidate, which is zero before the first step.
  [[nodiscard]] std::span<const Seconds> predicted() const noexcept {
    return {m_times.data(), m_times.size()};
  }
  /// Returns the transient bytes of each candidate on the rank that needs most.
  [[nodiscard]] std::span<const Bytes> needs() const noexcept {
    return {m_needs.data(), m_needs.size()};
  }

 private:
  static constexpr const char* where = "heddle::plan::ScheduleChoice";

  [[nodiscard]] static Bytes need(const Schedule& folded);

  [[nodiscard]] bool fits(std::size_t candidate) const { return m_needs[candidate] <= m_memory; }

  bool choose();

  std::vector<Schedule> m_candidates;
  std::vector<Bytes> m_needs;
  std::vector<Seconds> m_times;
  ObservedCosts m_costs;
  Timeline m_simulated;  ///< kept for its memory
  Bytes m_memory;
  std::size_t m_current = 0;
};

}  // namespace heddle::inline v0::plan

#if HEDDLE_DEFINES_PLAN
#include <heddle/plan/schedule_choice.ipp>
#endif
