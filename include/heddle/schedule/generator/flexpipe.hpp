// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// FlexPipe: a model of several branches (for example an image tower and a text tower) on one
/// pipeline, with the branches in opposite directions. The orders in this file go by slots.
/// plan/solver/coordinate.hpp searches for better ones.

#include <vector>

#include <heddle/core/linkage.hpp>
#include <heddle/schedule/order/orders.hpp>
#include <heddle/schedule/order/stage_graph.hpp>
#include <heddle/schedule/schedule.hpp>
#include <heddle/schedule/stage_storage.hpp>

namespace heddle::inline v0::schedule {

/// Options of flexpipe(): a model of branches of `ranks` stages each.
struct FlexpipeOptions {
  /// An edge between branches: the output of a stage of one branch is an input of a stage of
  /// another branch. Stages are counted from 0 within their branch.
  struct Interaction {
    int from_branch = 0;  ///< the branch that makes the output
    int from_stage = 0;   ///< the stage that makes it
    int to_branch = 1;    ///< the branch that reads it
    int to_stage = 0;     ///< the stage that reads it
  };

  int ranks = 1;                               ///< number of ranks, and of stages per branch
  int microbatches = 1;                        ///< in a step
  int branches = 2;                            ///< each from its own data to the joint loss
  std::vector<Interaction> interactions = {};  ///< edges between branches before the joint loss
  StageSizes sizes = {};                       ///< sizes of what a stage keeps and sends
};

/// Returns the graph of the stages of all branches. Stage s of branch b has the number
/// b * ranks + s. The last stages share a loss: the backward pass of each reads the outputs of the
/// others.
/// @throws contract_error if a count is below 1, or if an interaction names a stage that does not
///         exist or connects stages of one branch. Cyclic interactions are found when orders
///         are made for the graph.
[[nodiscard]] StageGraph branch_graph(
    int ranks, int branches, const std::vector<FlexpipeOptions::Interaction>& interactions = {});

/// Returns the orders of FlexPipe. Even branches run down the ranks (stage s is on rank s) and odd
/// branches run up (stage s is on rank ranks - 1 - s). One branch works while another one waits,
/// and every rank holds a stage of each branch. No weights are stored twice, but Chimera has two
/// copies. (Zong et al., "Accelerating distributed training of large concurrent-branch models
/// through bidirectional pipeline coordination", Tsinghua Science and Technology 30(6), 2025. Only
/// the abstract was available, so the rule below is ours.)
///
/// Every rank computes in the order of Chimera's slots. With L levels of stages (distances from the
/// data), the forward of microbatch m on a stage of level l is in slot 2 m + l and its backward in
/// slot 2 m + 2 L - 1 - l. A slot comes after all slots that it needs, so these orders always
/// progress.
/// @throws contract_error if there is no microbatch, if the interactions are cyclic, and as
///         branch_graph() does.
[[nodiscard]] Orders flexpipe(int ranks, int microbatches, int branches = 2,
                              const std::vector<FlexpipeOptions::Interaction>& interactions = {});

/// Returns the Schedule that weave() makes of the Orders of flexpipe().
[[nodiscard]] Schedule flexpipe(const FlexpipeOptions& options);

}  // namespace heddle::inline v0::schedule

#if HEDDLE_DEFINES_SCHEDULE_GENERATOR
#include <heddle/schedule/generator/flexpipe.ipp>
#endif
