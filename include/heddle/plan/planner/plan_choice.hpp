// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// PlanChoice: decides between two steps of a run whether another Plan pays, by measured steps.
/// AdaptiveRunner (execute/) runs its choice.

#include <cstddef>
#include <cstdint>
#include <functional>
#include <iosfwd>
#include <span>
#include <string>
#include <vector>

#include <heddle/core/index.hpp>
#include <heddle/core/linkage.hpp>
#include <heddle/core/units.hpp>
#include <heddle/machine/machine.hpp>
#include <heddle/plan/plan_problem.hpp>
#include <heddle/plan/planner/search.hpp>
#include <heddle/plan/profile.hpp>
#include <heddle/schedule/monitor.hpp>
#include <heddle/schedule/plan.hpp>
#include <heddle/schedule/schedule.hpp>
#include <heddle/schedule/timeline.hpp>

namespace heddle::inline v0::plan {

/// A function that returns the plans to choose from, in the order of preference. `present` is the
/// plan that runs; it has no stages before the first one is chosen. Equal arguments must give equal
/// plans on every rank.
using PlanSource =
    std::function<std::vector<Plan>(const PlanProblem& problem, const Plan& present)>;

/// Returns the plan of rebalanced(), and the best plan of each planner that finds one which fits in
/// memory. Equal plans are returned once.
[[nodiscard]] std::vector<Plan> searched_plans(const PlanProblem& problem, const Plan& present,
                                               std::span<const NamedPlanner> planners);

/// Returns a source of always the same plans.
[[nodiscard]] PlanSource fixed_plans(std::vector<Plan> plans);

/// Returns `present` with its layers divided anew over the same stages, such that a step takes the
/// least time. All divisions are simulated if there are at most `most`. Otherwise a division whose
/// slowest stage is fastest is improved by moving single layers.
/// @throws contract_error if the plan is invalid or cannot be expressed as a Schedule.
[[nodiscard]] Plan rebalanced(const Plan& present, const PlanProblem& problem,
                              std::uint64_t most = 1000);

/// The options of a PlanChoice.
struct PlanChoiceOptions {
  PlanOptions search = {};  ///< the batch, and what planners may choose from
  /// The bytes of the state of each layer that move with it. Empty: state_sizes() of the profile.
  std::vector<Bytes> state = {};
  /// The time in seconds that a change of the plan takes besides its messages.
  Seconds pause = 0;
  /// The hysteresis: a plan is taken only if the present one takes more than this share longer.
  double gain = 0.05;
  /// If true, every plan must use all ranks of the machine. If false, plans may leave ranks out. A
  /// rank that is left out is not measured, so it does not return when it recovers.
  bool all_ranks = true;
  /// How slow ranks and links are found. The median of the latest `steps` looks counts, and the
  /// first decision needs more than half as many. So a single outlier of three looks changes
  /// nothing, and a fault that lasts is seen with the second look.
  MonitorOptions monitor = {.least = 1.25, .deviations = 5, .steps = 3};
  /// The planners that are asked for candidates, see searched_plans(). Example:
  /// systems::planners().
  std::vector<NamedPlanner> planners = {};
  PlanSource candidates = {};  ///< takes the place of the planners
};

/// A plan that a PlanChoice has considered.
struct ConsideredPlan {
  Plan plan = {};         ///< the plan
  Seconds step = 0;       ///< the predicted time of a step
  Seconds migration = 0;  ///< the predicted time of the change to it
};

/// Learns from measured steps which ranks and links are slower than planned, and chooses the Plan
/// of the next steps.
///
/// A Monitor compares each measured step with the one that the profile and the machine predict. A
/// rank whose computing time is not usual among all ranks gets a device of its own, for which every
/// layer takes its measured factor longer, or less long. Ranks that are usual keep the profile's
/// times, so noise does not make planners see unequal ranks. A slow pair of ranks gets a slower
/// link. A step cannot tell a slow rank from layers that the profile prices too low; both count as
/// the rank's.
///
/// When a factor changes by more than a tenth, the candidates are searched anew for the profile and
/// the machine that were learned. Each is simulated. With n steps left, a plan of t seconds a step,
/// whose migration() takes m seconds and whose pause is p, costs n * t + m + p. The plan of the
/// least cost is taken if it costs less than the present one and the present one takes more than
/// `gain` longer a step. When the rank recovers, the same rule leads back.
///
/// A value without messages. The choice is deterministic: the same Timelines give the same plans on
/// every rank. The hysteresis and the price of the change follow no publication.
class PlanChoice {
 public:
  /// Constructs a choice whose first plan is the candidate of the least simulated time.
  /// @throws contract_error as PlanProblem, if `gain` or `pause` is negative or not finite, or if a
  ///         candidate has another number of ranks or layers, another batch, or a state that
  ///         migration() cannot move: a tensor degree above 1, or a sharding other than zero1,
  ///         zero2 and zero3. Also if there are neither planners nor `candidates`.
  /// @throws infeasible if there is no candidate that fits in memory.
  PlanChoice(Profile profile, Machine machine, PlanChoiceOptions options);
  /// Constructs a choice that begins with `first`. Throws as the other constructor, and if `first`
  /// is such a plan.
  PlanChoice(Profile profile, Machine machine, PlanChoiceOptions options, Plan first);

  /// Returns the plan to run, with what was predicted when it was chosen.
  [[nodiscard]] const Plan& plan() const noexcept { return m_plan; }
  /// Returns the Schedule of the plan on all ranks of the machine.
  [[nodiscard]] Schedule schedule() const;
  /// Returns the Schedule that takes the state from the plan before to the present one, see
  /// migration().
  [[nodiscard]] Schedule migration_to(const Plan& next) const;

  /// Learns from a measured step of the present plan. `left` steps will follow. Returns true if the
  /// plan changes.
  /// @throws contract_error if a time is not finite, if `left` is negative, or as candidates().
  bool observe(const Timeline& step, std::int64_t left);

  /// Returns the predicted time of a step of a plan on the profile and the machine that were
  /// learned.
  [[nodiscard]] Seconds step_time(const Plan& plan) const;
  /// Returns the plans that were considered last: the present one first, with no migration.
  [[nodiscard]] const std::vector<ConsideredPlan>& considered() const noexcept {
    return m_considered;
  }
  /// Returns the factor by which a rank computes longer than the profile says, as it was learned.
  [[nodiscard]] double slowness(Rank rank) const { return m_factors.at(+rank); }
  /// Returns the profile and the machine as they were learned.
  [[nodiscard]] const Profile& profile() const noexcept { return m_learned_profile; }
  /// Returns the machine as it was learned.
  [[nodiscard]] const Machine& machine() const noexcept { return m_learned_machine; }
  /// Returns the observations, which also name the faults.
  [[nodiscard]] const Monitor& monitor() const noexcept { return m_monitor; }
  /// Returns the number of changes so far.
  [[nodiscard]] int changes() const noexcept { return m_changes; }

  /// Prints the last decision in one line: the slow ranks, and the times of both plans.
  friend std::ostream& operator<<(std::ostream& out, const PlanChoice& choice);

 private:
  static constexpr const char* where = "heddle::plan::PlanChoice";
  /// The change of a factor that begins a new search.
  static constexpr double new_search = 0.1;

  void check_options() const;
  void check_plan(const Plan& plan, const char* what) const;
  [[nodiscard]] PlanProblem problem() const;
  /// Returns what is predicted for a plan on the profile and the machine that were learned.
  [[nodiscard]] PlanPrediction prediction_of(const ConsideredPlan& considered) const;
  /// Returns the candidates that fit in memory.
  [[nodiscard]] std::vector<Plan> candidates() const;
  /// Updates the factors. Returns true if one has changed.
  bool learn();
  void apply_factors();
  bool choose(std::int64_t left);

  Profile m_profile, m_learned_profile;
  Machine m_machine, m_learned_machine;
  PlanChoiceOptions m_options;
  Monitor m_monitor;
  std::vector<double> m_factors;  ///< the factors of computation, by rank
  std::vector<double> m_links;    ///< the factors of transfers, by [from * ranks + to]
  Plan m_plan;
  Plan m_before;  ///< the plan before the last decision
  std::vector<ConsideredPlan> m_considered;
  std::size_t m_looks = 0;
  int m_changes = 0;
};

}  // namespace heddle::inline v0::plan

#if HEDDLE_DEFINES_PLAN_PLANNER
#include <heddle/plan/planner/plan_choice.ipp>
#endif
