// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// ScheduleChoice: which of several Schedules of the same work to run next, decided anew from
/// measured steps and the memory there is. AdaptiveRunner (execute/) runs what it chooses.

#include <cstddef>
#include <limits>
#include <span>
#include <vector>

#include <heddle/core/linkage.hpp>
#include <heddle/core/units.hpp>
#include <heddle/plan/observed_costs.hpp>
#include <heddle/schedule/schedule.hpp>
#include <heddle/schedule/timeline.hpp>

namespace heddle::inline v0 {

/// One of several candidates, such as 1F1B in groups of 1, 2 and 4 microbatches: the order in which
/// they are given is the order of preference, so the one that needs least memory comes first.
///
/// After a measured step every candidate that fits is simulated at the observed costs. Wanted is
/// the first that is predicted to take at most gain / 2 longer than the fastest. It becomes the
/// choice where the present one no longer fits, comes later in the order, or is predicted to take
/// more than `gain` longer. Between the two thresholds nothing changes, so that noise does not
/// swing the choice to and fro, and a link that is free again leads back to the first candidate.
///
/// After Wang et al., "Ada-Grouper: Accelerating pipeline parallelism in preempted network by
/// adaptive group-scheduling for micro-batches" (2023), which measures transfers and prices plans
/// while it trains; the hysteresis is ours. The same steps give the same choice on every rank.
class ScheduleChoice {
 public:
  /// How much longer than the wanted candidate the present one must be predicted to take before a
  /// later one takes its place, as a share of the wanted one's time. Half of it is how much longer
  /// than the fastest the wanted one may take.
  static constexpr double gain = 0.02;

  /// Among `candidates`, each with the memory of fold_to_live() at most `memory` bytes a rank, as
  /// far as they know the sizes of their buffers; see as_run(). The first choice is the first that
  /// fits: nothing is known of costs.
  /// @throws contract_error for no candidates, or different numbers of ranks.
  /// @throws infeasible where none fits.
  explicit ScheduleChoice(std::vector<Schedule> candidates,
                          Bytes memory = std::numeric_limits<Bytes>::max());

  /// What is to run.
  [[nodiscard]] const Schedule& schedule() const noexcept { return m_candidates[m_current]; }
  /// Its number among the candidates.
  [[nodiscard]] std::size_t current() const noexcept { return m_current; }
  /// The candidates, as they were given.
  [[nodiscard]] const std::vector<Schedule>& candidates() const noexcept { return m_candidates; }

  /// Learns from a measured step of any candidate. True where the choice changes.
  bool observe(const Timeline& step);

  /// What the candidates need, read off the same ones as they run: with the sizes of all buffers,
  /// which perhaps only the model knows (see Runner::prepare), and folded. True where the choice
  /// changes.
  /// @throws contract_error for another number of them.
  /// @throws infeasible where none fits.
  bool as_run(std::span<const Schedule> candidates);

  /// From now on a rank has `memory` bytes for transient storage. True where the choice changes.
  /// @throws infeasible where no candidate fits; the limit and the choice stay as they were then.
  bool limit(Bytes memory);

  /// What was learned.
  [[nodiscard]] const ObservedCosts& costs() const noexcept { return m_costs; }
  /// The predicted time of each candidate; zeros before the first step.
  [[nodiscard]] std::span<const Seconds> predicted() const noexcept { return m_times; }
  /// Transient bytes of each candidate on the rank that needs most.
  [[nodiscard]] std::span<const Bytes> needs() const noexcept { return m_needs; }

 private:
  static constexpr const char* where = "heddle::ScheduleChoice";

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

}  // namespace heddle::inline v0

#if HEDDLE_HEADER_ONLY
#include <heddle/plan/schedule_choice.ipp>
#endif
