// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// plan::search(): asks planners for a plan each and prices what they find by one simulator.

#include <cstddef>
#include <iosfwd>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <heddle/core/linkage.hpp>
#include <heddle/core/units.hpp>
#include <heddle/machine/machine.hpp>
#include <heddle/plan/found_plan.hpp>
#include <heddle/plan/plan_problem.hpp>
#include <heddle/plan/profile.hpp>
#include <heddle/schedule/plan.hpp>

namespace heddle::inline v0::plan {

/// A planner that is chosen while a program runs. systems/planners.hpp lists those of the
/// literature.
struct NamedPlanner {
  std::string_view name;                    ///< the name that users write, such as "DAPPLE"
  std::string_view about;                   ///< a description in one line, with its source
  FoundPlan (*search)(const PlanProblem&);  ///< finds a plan
  Seconds (*formula)(const Plan&, const PlanProblem&);  ///< prices a plan
};

/// Returns the planner P, with its default options, for a list of planners.
template <Planner P>
[[nodiscard]] NamedPlanner named_planner(std::string_view about) {
  return {P::name, about, [](const PlanProblem& problem) { return P{}.search(problem); },
          [](const Plan& plan, const PlanProblem& problem) { return P{}.formula(plan, problem); }};
}

/// Returns the planner of `planners` that is called `name`.
/// @throws contract_error if there is none. The error lists all of them.
[[nodiscard]] const NamedPlanner& find_planner(std::span<const NamedPlanner> planners,
                                               std::string_view name);

/// Returns those of `planners` that are called `names`, each once, in the order of `planners`.
/// @throws contract_error as find_planner().
[[nodiscard]] std::vector<NamedPlanner> select_planners(std::span<const NamedPlanner> planners,
                                                        const std::vector<std::string>& names);

/// A line of a PlanSearch: what a planner found, and its prices by the simulator.
struct PricedPlan {
  FoundPlan found = {};            ///< what the planner found
  Seconds simulated = 0;           ///< simulated_step() of the plan
  std::vector<Bytes> memory = {};  ///< plan_memory() of the plan, by rank
};

/// Returns what a planner found, with its prices, which are also the plan's prediction. A plan that
/// does not fit in memory is dropped; then FoundPlan::infeasible names the rank and its bytes.
[[nodiscard]] PricedPlan priced_plan(FoundPlan found, const PlanProblem& problem);

/// Returns a lower bound of the time of a step, of every plan whose ranks do not divide sequences:
/// the least device time of all layers and samples, over the speeds of all ranks. It counts no
/// messages. 0 if there are sequence degrees above 1.
[[nodiscard]] Seconds least_step(const PlanProblem& problem);

/// The result of search(). Prints a line for each planner: its own formula, the simulated time,
/// the memory of the fullest rank, and the number of candidates. If planners were cut off, it also
/// prints their names and the lower bound.
class PlanSearch {
 public:
  /// Constructs the result from what each planner found, and from least_step() or 0.
  explicit PlanSearch(std::vector<PricedPlan> plans, Seconds bound = 0)
      : m_plans(std::move(plans)), m_bound(bound) {}

  /// Returns the results, one for each planner, in the order of the planners.
  [[nodiscard]] const std::vector<PricedPlan>& plans() const noexcept { return m_plans; }
  /// Returns the plan of the least simulated time; of equal ones the first.
  /// @throws infeasible if no planner found one. The error gives the reason of every planner.
  [[nodiscard]] const Plan& best() const { return *best_priced().found.plan; }
  /// Returns the line of best(). @throws infeasible as best().
  [[nodiscard]] const PricedPlan& best_priced() const;
  /// Returns a lower bound of the simulated time of every plan, see least_step(). 0: unknown.
  [[nodiscard]] Seconds bound() const noexcept { return m_bound; }

  friend std::ostream& operator<<(std::ostream& out, const PlanSearch& search);

 private:
  std::vector<PricedPlan> m_plans;
  Seconds m_bound;
};

/// Asks `planners` for plans of a batch, for example systems::planners().
///
/// DAPPLE, PipeDream, Holmes and Frontier 3D take ranks by number, as their papers do. So the
/// planners search a machine whose ranks are numbered anew. Fast devices come first. If devices are
/// equally fast, those with more memory come first. The ranks of each group of a level are
/// together. The plans have the numbers of `machine`. A planner that finds no plan in this order,
/// because of memory, is asked with other orders, and at last with the numbers of `machine` and,
/// for at most 4 ranks, with all orders.
///
/// The times of the plans do not depend on the numbers of the ranks, with three exceptions. A plan
/// of more than 4 ranks that was found with the numbers of `machine` depends on them. Links of
/// pairs and shared lines do not count in the order of more than 512 ranks. Ranks that no class of
/// links distinguishes keep their order, also if they cannot change places.
///
/// PlanOptions::budget limits the search. Its seconds are divided equally among the planners that
/// are left, and its steps and bytes are those of each planner. If the seconds are limited, a
/// planner searches with few steps first and then again with more of them, and the best plan
/// counts. So a search of more time does not lose the plan of a search of less time. A planner that
/// throws an exception does not end the search; FoundPlan::end says so, and FoundPlan::infeasible
/// has the message.
/// Planners that were not asked because PlanOptions::progress returned false are cut off.
///
/// The best plan is never slower than the k fastest ranks as replicas, for any k, if Replicas is
/// among the planners, was not cut off, and tensor degree 1 is among the degrees.
/// @throws contract_error as PlanProblem(), and if there are no planners. If all planners fail, it
///         throws the exception of the first one.
[[nodiscard]] PlanSearch search(const Profile& profile, const Machine& machine,
                                const PlanOptions& options, std::span<const NamedPlanner> planners);

namespace impl {

/// Returns what the planners find, in their order, as search().
[[nodiscard]] std::vector<PricedPlan> ask_planners(const PlanProblem& problem,
                                                   std::span<const NamedPlanner> planners);

}  // namespace impl

}  // namespace heddle::inline v0::plan

#if HEDDLE_DEFINES_PLAN_PLANNER
#include <heddle/plan/planner/search.ipp>
#endif
