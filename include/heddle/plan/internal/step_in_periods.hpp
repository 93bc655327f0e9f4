// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// step_in_periods(): the time of a plan's step without a list of all actions.

#include <heddle/core/units.hpp>
#include <heddle/schedule/plan.hpp>

namespace heddle::inline v0::plan {

class PlanProblem;

namespace impl {

/// Returns simulated_step() by simulate_periodic(). Both are equal but for the rounding of
/// simulate(). The definition is in plan_problem.ipp.
/// @throws infeasible as simulate_periodic(), and if updates of several buckets are among the
///         passes.
[[nodiscard]] Seconds step_in_periods(const Plan& plan, const PlanProblem& problem);

}  // namespace impl

}  // namespace heddle::inline v0::plan
