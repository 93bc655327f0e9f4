// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// Dapple: DAPPLE's planner. It divides layers and ranks for a synchronous pipeline.

#include <cstddef>
#include <span>
#include <string_view>

#include <heddle/core/linkage.hpp>
#include <heddle/core/units.hpp>
#include <heddle/plan/found_plan.hpp>
#include <heddle/plan/plan_problem.hpp>
#include <heddle/schedule/plan.hpp>

namespace heddle::inline v0::systems {

/// A stage of pivot_latency(). A transfer between two stages is a stage of its own.
struct LatencyStage {
  Seconds forward = 0;   ///< F of a microbatch
  Seconds backward = 0;  ///< B of a microbatch
  Seconds tail = 0;      ///< after its last backward: the sum of gradients and the update
};

/// Returns the pivot stage. The latency of a synchronous step is predicted from its steady phase,
/// which has no bubbles. The search begins at the last stage, Q. It moves to an earlier stage s if
/// (M - 1)(F_s + B_s) exceeds (M - 1)(F_Q + B_Q) plus the F + B of the stages between.
/// @throws contract_error if there are no stages, or if `microbatches` is below 1.
[[nodiscard]] std::size_t pivot_stage(std::span<const LatencyStage> stages, int microbatches);

/// Returns DAPPLE's latency of a synchronous step with M microbatches and the pivot Q:
///
///     L = sum_{s <= Q} F_s + (M - 1)(F_Q + B_Q) + max_s (tail_s + sum_{s..Q} B)     for s <= Q
///                                                       (tail_s - sum_{Q..s} B)     for s > Q.
///
/// Source: S. Fan et al., "DAPPLE: A Pipelined Data Parallel Approach for Training Large Models",
/// PPoPP'21. It is never below (M - 1)(F_s + B_s) of any stage.
/// @throws contract_error if there are no stages, or if `microbatches` is below 1.
[[nodiscard]] Seconds pivot_latency(std::span<const LatencyStage> stages, int microbatches);

/// DAPPLE's planner (Fan et al., PPoPP'21).
///
/// Its plans are the sequences of stages in which each stage takes free ranks by one of three
/// policies, and divides each microbatch over them as equally as possible. Ranks may stay free. A
/// node is a group of the first level of the machine that has more than one rank, or a rank.
///
/// - Fresh first: nodes without a used rank, then the other ones, each in order.
/// - Append first: nodes with used and free ranks, then the other ones, each in order.
/// - Scatter: one free rank of each node in turn.
///
/// The price of a plan is pivot_latency() of its stages and transfers, by stage_prices(). A dynamic
/// programme over layers and used ranks gives the least largest stage of what remains, as in the
/// released planner. The released planner ranks the plans of this programme. Heddle bounds with it
/// a search through all plans, which is exact unless it exceeds `most_candidates` or the budget. In
/// this case the result is the best plan that was seen. Within the budget, all plans of one and two
/// stages are seen, and min-max partitions of the layers for equal numbers of ranks, and for each
/// division of the ranks over up to three stages. If the table of the dynamic programme becomes too
/// large, the work of the layers over the free ranks takes its place as a bound.
///
/// The formula supposes that transfers overlap with computation as stages of their own do. The
/// schedule "dapple" (policy B) gives that; under "1f1b" a step with long transfers takes longer
/// than the formula says.
struct Dapple {
  static constexpr std::string_view name = "DAPPLE";  ///< for users

  /// Stages that the search tries, for each number of microbatches, before it stops.
  std::size_t most_candidates = 400'000;

  /// Returns the plan of the least formula() that fits in memory. Throws nothing if there is none:
  /// the result then says why.
  [[nodiscard]] plan::FoundPlan search(const plan::PlanProblem& problem) const;
  /// Returns the price of a plan. The update of the weights is added to the sum of gradients.
  /// @throws contract_error for an invalid plan.
  [[nodiscard]] Seconds formula(const Plan& plan, const plan::PlanProblem& problem) const;
};

static_assert(plan::Planner<Dapple>);

}  // namespace heddle::inline v0::systems

#if HEDDLE_DEFINES_SYSTEMS
#include <heddle/systems/dapple/dapple.ipp>
#endif
