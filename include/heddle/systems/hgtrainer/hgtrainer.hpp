// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// HGTrainer: a planner for sites of unequal accelerators that are joined by slow links.

#include <string_view>

#include <heddle/core/linkage.hpp>
#include <heddle/core/units.hpp>
#include <heddle/plan/found_plan.hpp>
#include <heddle/plan/plan_problem.hpp>
#include <heddle/schedule/plan.hpp>

namespace heddle::inline v0::systems {

/// A planner after HGTrainer (Zong et al., Big Data Mining and Analytics, 2025). Only its abstract
/// was available, so the formulation is ours: a hierarchical search with casts at cuts.
///
/// Sites are the groups of the machine's last level but one, or the kinds of device if there are no
/// such groups. Outside, the planner tries every order of some or all sites. A cut between two
/// sites is at most `window` layers from the place that divides the work in proportion to the
/// sites' speeds. Inside a site, a dynamic programme over layers and ranks is exact: it chooses the
/// stages, their ranks and tensor degrees, and whether a stage recomputes because it does not fit
/// otherwise. It keeps every partial plan that no other one dominates. Ranks of a site are used
/// fastest first; some at the end may be left out. In a stage of unequal ranks, samples are divided
/// as Metis does. At every cut between sites, the format of PlanOptions::codecs with the
/// shortest messages is used.
///
/// Partial plans whose lower bound is not below the best plan are dropped. The bound has the work
/// of the remaining layers over all speeds, and the narrowest cut between sites.
///
/// If this is too much for the budget, the search is coarse. Each order of sites gets an equal part
/// of the budget for each number of microbatches. Stages then consist of blocks of 2, 4, ... ranks,
/// with at least 8 blocks in a site, and if need be of blocks of layers. Of the partial plans that
/// begin with the same stage, the 8 fastest are kept.
struct HGTrainer {
  static constexpr std::string_view name = "HGTrainer";  ///< the name that users write

  int window = 4;  ///< layers between a cut and its proportional place, at most

  /// Returns the best plan by formula(). @throws contract_error if `window` is negative.
  [[nodiscard]] plan::FoundPlan search(const plan::PlanProblem& problem) const;

  /// Returns the time of a step: (M - 1) * max(t, x) + sum t + sum of both x + max gradient sum,
  /// with t the forward and backward of a stage and x the messages of a microbatch at a cut. The
  /// two directions of a cut are used at the same time, so the longer one counts in the maximum.
  /// The update is not counted.
  [[nodiscard]] Seconds formula(const Plan& plan, const plan::PlanProblem& problem) const;
};
static_assert(plan::Planner<HGTrainer>);

}  // namespace heddle::inline v0::systems

#if HEDDLE_DEFINES_SYSTEMS
#include <heddle/systems/hgtrainer/hgtrainer.ipp>
#endif
