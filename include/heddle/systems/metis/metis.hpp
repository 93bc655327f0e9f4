// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// Metis: a planner that enumerates groups of unequal devices and balances layers over them.

#include <string_view>
#include <vector>

#include <heddle/core/linkage.hpp>
#include <heddle/core/units.hpp>
#include <heddle/plan/found_plan.hpp>
#include <heddle/plan/plan_problem.hpp>
#include <heddle/schedule/plan.hpp>

namespace heddle::inline v0::systems {

/// The planner of Metis (Um et al., USENIX ATC'24), written from its description.
///
/// Outside, it tries every order of the kinds of device, every number of stages, every list of
/// group sizes from device_group_lists() and every number of microbatches. Inside, every stage
/// begins with data parallelism only. Then the stage with the least memory left halves its groups
/// and doubles its tensor degree, until no stage can. In a stage of unequal devices, samples are
/// divided in proportion to speed by largest remainder, and then moved one by one while this helps.
///
/// Layers are balanced by time: each is split into 7 sublayers, which fill the stages from the
/// front and the last stage from the back. The sublayers between go to the neighbour with the most
/// capacity left, and each layer goes to the stage that has most of it. If a stage then exceeds its
/// memory, its share is reduced, up to 3 times; after that, an exact division is taken.
///
/// Differences to the paper's program: if the number of devices is not a power of two, groups may
/// also be power-of-two multiples of its odd part, such as 3 and 6 of 6. Times between measured
/// numbers of samples are those of Profile, not sums over powers of two. If no plan uses all ranks,
/// the planner tries to leave out ranks at the end of the order. Boundaries of good plans are moved
/// by single layers while this shortens the step (`refined`). Casts and recomputation are not used.
/// If there are too many lists of group sizes for the budget, up to 16 lists are tried for each
/// number of stages, those of nearly equal groups first, each with the most microbatches first.
struct Metis {
  static constexpr std::string_view name = "Metis";  ///< the name that users write

  /// The orders of the groups of devices are permutations of blocks of equal groups. There are at
  /// most so many blocks; see device_group_lists().
  int longest_permutation = 6;
  /// A group has at least this part of the mean number of devices per stage.
  double variance = 0.5;
  /// The boundaries of a plan are moved by single layers if its time is at most this multiple of
  /// the best one's. 0: of no plan.
  double refined = 1.1;

  /// Returns the best plan by formula(). @throws contract_error if an option is out of range.
  [[nodiscard]] plan::FoundPlan search(const plan::PlanProblem& problem) const;

  /// Returns the time of a step: (M - 1) * max t + sum t + max update + max gradient sum + sum x,
  /// with t the forward and backward of a stage and x the messages of a microbatch at a cut, in
  /// both directions, which are not overlapped. The tensor-parallel communication is in the times
  /// of the profile, and reading data takes no time.
  [[nodiscard]] Seconds formula(const Plan& plan, const plan::PlanProblem& problem) const;
};
static_assert(plan::Planner<Metis>);

/// Returns the lists of group sizes that Metis tries for `devices` devices and `stages` stages, in
/// ascending order. Sizes are powers of two, or such multiples of the odd part of `devices`, and
/// not smaller than `variance` * max(devices div stages, stages div devices). A list is a
/// permutation of blocks of equal groups. There are at most `longest_permutation` blocks: while
/// there are more, the two smallest equal ones are merged.
/// @throws contract_error if a number is below 1.
[[nodiscard]] std::vector<std::vector<int>> device_group_lists(int devices, int stages,
                                                               int longest_permutation = 6,
                                                               double variance = 0.5);

}  // namespace heddle::inline v0::systems

#if HEDDLE_DEFINES_SYSTEMS
#include <heddle/systems/metis/metis.ipp>
#endif
