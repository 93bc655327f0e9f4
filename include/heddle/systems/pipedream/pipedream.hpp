// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// PipeDream: PipeDream's planner. It divides layers and ranks level by level over the machine.

#include <cstddef>
#include <string_view>

#include <heddle/core/linkage.hpp>
#include <heddle/core/units.hpp>
#include <heddle/plan/found_plan.hpp>
#include <heddle/plan/plan_problem.hpp>
#include <heddle/schedule/plan.hpp>

namespace heddle::inline v0::systems {

/// PipeDream's planner (Narayanan et al., "PipeDream: generalized pipeline parallelism for DNN
/// training", SOSP'19), with the factors of its released optimiser.
///
/// On each level of the machine, from the last to the first, layers are divided over the groups of
/// the level below, in order. Some at the end may stay free. A part of the layers that is on m
/// groups is divided alike inside each of them, and each has an equal share of the microbatch, or
/// one sample more or less. The level below has at most r ranks in a group, and b bytes per second
/// pass between two groups. If the part has w bytes of weights, and there are R copies of the group
/// above, the time of the part for a microbatch is
///
///     T(part, m) = T(part inside a group) + 4 (m - 1) w / (b m r) / (R m),
///
/// and T(part inside a rank) is its F + B. A part after the first one receives activations of a
/// bytes and sends their gradients in 2 a / (b m R). The time of a step is the greatest of all,
/// times the number of microbatches: a pipeline that is never empty. That needs ceil(ranks /
/// replicas of the first stage) microbatches in flight, and a plan has at least as many. (The
/// released program gives whole microbatches to the replicas, round-robin, and divides T by m. Here
/// replicas have shares of every microbatch, so F + B are those of the largest share.)
///
/// A dynamic programme finds the least time on each level, which is exact. If the plan has too few
/// microbatches or too little memory, a search through all plans, bounded by the same tables, finds
/// the best that has enough. It is exact unless it exceeds `most_candidates` or the budget. If the
/// budget ends before the tables are complete, there is no plan.
struct PipeDream {
  static constexpr std::string_view name = "PipeDream";  ///< for users

  /// Stages that the second search tries, for each number of microbatches, before it stops.
  std::size_t most_candidates = 400'000;

  /// Returns the plan of the least formula() that fits in memory, or says why there is none.
  [[nodiscard]] plan::FoundPlan search(const plan::PlanProblem& problem) const;
  /// Returns the price of a plan. If its stages do not divide the groups of a level as described
  /// above, stages with the same groups form a part, and m is the largest number of groups that it
  /// has within a group of the level above. Casts are not counted.
  /// @throws contract_error for an invalid plan.
  [[nodiscard]] Seconds formula(const Plan& plan, const plan::PlanProblem& problem) const;
};

static_assert(plan::Planner<PipeDream>);

}  // namespace heddle::inline v0::systems

#if HEDDLE_DEFINES_SYSTEMS
#include <heddle/systems/pipedream/pipedream.ipp>
#endif
