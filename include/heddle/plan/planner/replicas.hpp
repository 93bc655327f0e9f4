// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// Replicas: a planner that leaves the model whole and chooses how many ranks divide the samples.

#include <string_view>

#include <heddle/core/linkage.hpp>
#include <heddle/core/units.hpp>
#include <heddle/plan/found_plan.hpp>
#include <heddle/plan/plan_problem.hpp>
#include <heddle/schedule/plan.hpp>

namespace heddle::inline v0::plan {

/// A planner of one stage: the k fastest ranks, for every k, as replicas of all layers. It is what
/// the plans of the other planners must beat.
///
/// If ranks are equally fast, the planner takes those that sum gradients fastest. If the memory of
/// a rank is too small, the planner tries the fastest of the ranks with enough memory. The samples
/// of a microbatch are divided equally and by speed, see Metis, and every number of microbatches is
/// tried. Layers and sequences are not divided.
struct Replicas {
  static constexpr std::string_view name = "Replicas";  ///< the name that users write

  /// Returns the best plan by formula().
  [[nodiscard]] FoundPlan search(const PlanProblem& problem) const;

  /// Returns simulated_step(), which is exact for one stage.
  [[nodiscard]] Seconds formula(const Plan& plan, const PlanProblem& problem) const;
};
static_assert(Planner<Replicas>);

}  // namespace heddle::inline v0::plan

#if HEDDLE_DEFINES_PLAN_PLANNER
#include <heddle/plan/planner/replicas.ipp>
#endif
