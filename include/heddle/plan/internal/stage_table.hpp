// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// StageTable: the times of all stages that a planner may form, for one size of microbatches.
/// PlanTracker: the best plan that fits in memory.

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <heddle/core/index.hpp>
#include <heddle/core/linkage.hpp>
#include <heddle/core/units.hpp>
#include <heddle/layout/layer_range.hpp>
#include <heddle/plan/found_plan.hpp>
#include <heddle/plan/impl/layer_time_sums.hpp>
#include <heddle/plan/internal/plan_bytes.hpp>
#include <heddle/plan/internal/search_watch.hpp>
#include <heddle/plan/plan_problem.hpp>
#include <heddle/schedule/plan.hpp>

namespace heddle::inline v0::plan::impl {

/// Ranks that divide a microbatch, one sample more or less each. The first ones have more.
struct Replicas {
  std::vector<Rank> ranks;                    ///< in ascending order
  std::vector<std::int64_t> samples;          ///< by rank
  std::vector<const LayerTimeSums*> slowest;  ///< by kind of device, for its largest share
  Seconds sum_latency = 0;                    ///< the latency of an all-reduce over the ranks
  Seconds sum_per_byte = 0;                   ///< the time that each byte of it adds
};

/// The time of a stage for one microbatch, of its slowest rank.
struct StageTime {
  Seconds forward = 0;
  Seconds backward = 0;
};

/// The times of stages without tensor or sequence parallelism. A planner that prices many plans
/// asks it instead of Profile, which sums over the layers each time.
class StageTable {
 public:
  /// `samples` is the size of a microbatch.
  StageTable(const PlanProblem& problem, std::int64_t samples);

  /// Returns the size of a microbatch.
  [[nodiscard]] std::int64_t samples() const noexcept { return m_samples; }
  /// Returns the number of a rank's kind of device.
  [[nodiscard]] std::size_t kind(Rank rank) const { return m_kind[+rank]; }
  /// Returns the shares of `ranks`. There are at most as many ranks as samples.
  [[nodiscard]] Replicas replicas(std::vector<Rank> ranks);
  /// Returns the time of a stage.
  [[nodiscard]] StageTime time(LayerRange layers, const Replicas& replicas) const;
  /// Returns the time after the last backward: the sum of gradients and the update.
  [[nodiscard]] Seconds tail(LayerRange layers, const Replicas& replicas) const;
  /// Returns the least time that a layer can take for a sample, of F and B together.
  [[nodiscard]] Seconds least_time(int layer) const {
    return m_least[static_cast<std::size_t>(layer)];
  }
  /// Returns false if a rank has no memory for the weights and one microbatch.
  [[nodiscard]] bool may_fit(LayerRange layers, const Replicas& replicas) const;
  /// Returns the stage of a Plan.
  [[nodiscard]] static PlanStage stage(LayerRange layers, const Replicas& replicas) {
    return {.layers = layers, .ranks = replicas.ranks, .samples = replicas.samples};
  }

 private:
  const LayerTimeSums& sums(std::size_t kind, std::int64_t samples);

  const PlanProblem* m_problem;
  std::int64_t m_samples;
  std::vector<Rank> m_kinds;        ///< a rank of each kind of device
  std::vector<std::size_t> m_kind;  ///< by rank
  std::vector<Bytes> m_capacity;    ///< by rank; 0: unknown
  std::vector<Seconds> m_least;     ///< by layer
  std::map<std::pair<std::size_t, std::int64_t>, LayerTimeSums> m_sums;
};

/// Returns true if the memory of a rank is known.
[[nodiscard]] bool memory_matters(const PlanProblem& problem);

/// The best plan so far, and the one that lacks least memory if none fits.
class PlanTracker {
 public:
  /// `planner` is the name of the planner.
  PlanTracker(const PlanProblem& problem, std::string_view planner)
      : m_problem(&problem),
        m_planner(planner),
        m_watch(problem, planner),
        m_bytes(problem),
        m_memory(memory_matters(problem)) {}

  /// Returns what the planner has spent.
  [[nodiscard]] SearchWatch& watch() noexcept { return m_watch; }

  /// Returns true if a plan of this price would be the best.
  [[nodiscard]] bool improves(Seconds price) const { return !m_plan || price < m_price; }
  /// Returns the price of the best plan, or infinity.
  [[nodiscard]] Seconds price() const;
  /// Takes a plan if it fits in memory and is better than all before.
  void consider(Plan plan, Seconds price);
  /// Counts plans and parts of plans.
  void count(std::size_t more = 1) noexcept { m_watch.note(m_candidates += more, price()); }
  [[nodiscard]] std::size_t candidates() const noexcept { return m_candidates; }
  [[nodiscard]] bool found() const noexcept { return m_plan.has_value(); }

  /// Returns the best plan, or the reason why there is none. `formula(plan)` is the time of a step
  /// that the planner predicts for a plan.
  template <class Formula>
  [[nodiscard]] FoundPlan result(const Formula& formula) const {
    FoundPlan found{.planner = std::string(m_planner),
                    .plan = m_plan,
                    .candidates = m_candidates,
                    .end = m_watch.result()};
    if (m_plan) {
      found.formula = formula(*m_plan);
    } else {
      found.infeasible = why_not();
      found.shortage = m_least;
    }
    return found;
  }

 private:
  [[nodiscard]] std::string why_not() const;
  /// Returns a lower bound of the bytes that a rank lacks. It is cheaper than memory_shortage().
  [[nodiscard]] double least_lack(const Plan& plan);

  const PlanProblem* m_problem;
  std::string_view m_planner;
  SearchWatch m_watch;
  PlanBytes m_bytes;
  bool m_memory;
  std::optional<Plan> m_plan;
  Seconds m_price = 0;
  std::optional<MemoryShortage> m_least;  ///< that of the plan that lacks least
  std::size_t m_candidates = 0;
};

}  // namespace heddle::inline v0::plan::impl

#if HEDDLE_DEFINES_PLAN
#include <heddle/plan/internal/stage_table.ipp>
#endif
