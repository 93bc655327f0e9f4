// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// Frontier3D: a planner that tunes the tensor, sequence, pipeline and data degrees of a uniform
/// plan.

#include <cstddef>
#include <cstdint>
#include <string_view>

#include <heddle/core/linkage.hpp>
#include <heddle/core/units.hpp>
#include <heddle/plan/found_plan.hpp>
#include <heddle/plan/plan_problem.hpp>
#include <heddle/schedule/plan.hpp>

namespace heddle::inline v0::systems {

/// The planner of "Optimizing Distributed Training on Frontier for Large Language Models" (Dash et
/// al., 2023): all ranks in T * P * D, with equal layers for the P stages and equal samples for the
/// D groups of each. It chooses T, P, the number of microbatches, ZeRO stage 1 or none, and
/// recomputation or none. Ranks of a tensor group are consecutive, then come the groups of a stage,
/// then the stages. If PlanOptions::sequence_degrees has several degrees, it also chooses how many
/// such tensor groups divide the sequences of a group. The paper did not divide sequences.
///
/// A grid of at most `exhaustive` points is tried whole. A larger one is searched by tune() with
/// `share` of its points, but not fewer than a quarter of `exhaustive`. The paper used Bayesian
/// search.
struct Frontier3D {
  static constexpr std::string_view name = "Frontier 3D";  ///< the name that users write

  std::size_t exhaustive = 400;  ///< points of a grid that is tried whole
  double share = 0.15;           ///< share of a larger grid that is tried
  std::uint64_t seed = 0;        ///< seed of the search

  /// Returns the best plan by formula() of those that it tried.
  /// @throws contract_error if `share` is not in [0, 1].
  [[nodiscard]] plan::FoundPlan search(const plan::PlanProblem& problem) const;

  /// Returns the time of a step: (M + P - 1) * max(forward + backward) + the greatest gradient sum
  /// + the greatest update. The bubble of a pipeline is the P - 1. Messages between stages are not
  /// counted, since they are short and overlapped; the tensor groups' sums are in the times of the
  /// profile.
  [[nodiscard]] Seconds formula(const Plan& plan, const plan::PlanProblem& problem) const;
};
static_assert(plan::Planner<Frontier3D>);

}  // namespace heddle::inline v0::systems

#if HEDDLE_DEFINES_SYSTEMS
#include <heddle/systems/frontier_3d/frontier.ipp>
#endif
