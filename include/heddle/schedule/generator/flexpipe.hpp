// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// FlexPipe: a model of several branches (an image tower and a text tower, say) on one pipeline,
/// the branches in opposite directions. Orders by slots here; plan/coordinate.hpp searches better
/// ones.

#include <algorithm>
#include <utility>
#include <vector>

#include <heddle/core/contract.hpp>
#include <heddle/core/text.hpp>
#include <heddle/schedule/order/orders.hpp>
#include <heddle/schedule/order/stage_levels.hpp>
#include <heddle/schedule/order/weave.hpp>

namespace heddle::inline v0::schedule {

/// The output of a stage of one branch is an input of a stage of another branch. Stages are counted
/// from 0 within their branch.
struct Interaction {
  int from_branch = 0;  ///< whose output it is
  int from_stage = 0;   ///< of which stage
  int to_branch = 1;    ///< who takes it
  int to_stage = 0;     ///< in which stage
};

/// A model of branches of `ranks` stages each.
struct FlexpipeOptions {
  int ranks = 1;                               ///< and stages of every branch
  int microbatches = 1;                        ///< in a step
  int branches = 2;                            ///< each from data of its own to the joint loss
  std::vector<Interaction> interactions = {};  ///< besides the joint loss
  StageSizes sizes = {};                       ///< of what is kept and sent
};

/// The stages of all branches: stage s of branch b has the number b * ranks + s. The last stages
/// share a loss: the backward pass of each reads the outputs of the others.
/// @throws contract_error for counts below 1, and for an interaction between stages that are not
///         there or within one branch. stage_levels() finds those that wait for each other in a
///         circle.
[[nodiscard]] inline StageGraph branch_graph(int ranks, int branches,
                                             const std::vector<Interaction>& interactions = {}) {
  constexpr const char* where = "heddle::schedule::branch_graph";
  expects(ranks >= 1 && branches >= 1, [&] {
    return Complaint{where, "a model has at least one branch of at least one stage",
                     text("ranks = ", ranks, ", branches = ", branches)};
  });
  StageGraph graph{ranks * branches};
  const auto number = [ranks](int branch, int stage) { return Stage{branch * ranks + stage}; };
  for (int b = 0; b < branches; ++b)
    for (int s = 0; s + 1 < ranks; ++s) graph.edges.push_back({number(b, s), number(b, s + 1)});
  for (const auto& [from_branch, from_stage, to_branch, to_stage] : interactions) {
    const auto there = [](int index, int count) { return index >= 0 && index < count; };
    expects(there(from_branch, branches) && there(to_branch, branches) &&
                there(from_stage, ranks) && there(to_stage, ranks) && from_branch != to_branch,
            [&, a = from_branch, s = from_stage, b = to_branch, t = to_stage] {
              return Complaint{
                  where, "an interaction leads from a branch to another one",
                  text("from stage ", s, " of branch ", a, " to stage ", t, " of branch ", b,
                       ", with ", branches, " branches of ", ranks, " stages")};
            });
    graph.edges.push_back({number(from_branch, from_stage), number(to_branch, to_stage)});
  }
  for (int b = 0; b < branches; ++b)
    for (int other = 0; other < branches; ++other)
      if (b != other)
        graph.edges.push_back({number(other, ranks - 1), number(b, ranks - 1), Kind::backward});
  return graph;
}

/// Even branches run down the ranks (stage s on rank s), odd ones up (stage s on rank
/// ranks - 1 - s), so that one branch works where another still waits, and every rank holds a stage
/// of each: no weights twice, where Chimera has two copies. (Zong et al., "Accelerating distributed
/// training of large concurrent-branch models through bidirectional pipeline coordination",
/// Tsinghua Science and Technology 30(6), 2025; of which only the abstract was at hand. The rule
/// here is ours.)
///
/// Every rank computes in the order of Chimera's slots: with L levels of stages (stage_levels), the
/// forward of microbatch m on a stage of level l in slot 2 m + l, its backward in 2 m + 2 L - 1 -
/// l. A slot follows all slots that it needs, so these orders always progress.
/// @throws contract_error for no microbatches, as branch_graph() does, and for interactions that
///         wait for each other in a circle.
[[nodiscard]] inline Orders flexpipe_orders(int ranks, int microbatches, int branches = 2,
                                            const std::vector<Interaction>& interactions = {}) {
  expects(microbatches >= 1, [&] {
    return Complaint{"heddle::schedule::flexpipe", "a step has at least one microbatch",
                     text("microbatches = ", microbatches)};
  });
  Orders orders{text("FlexPipe P=", ranks, " M=", microbatches),
                {},
                branch_graph(ranks, branches, interactions)};
  const std::vector<int> level = stage_levels(orders.graph);
  const int levels = 1 + *std::max_element(level.begin(), level.end());
  std::vector<std::pair<int, Order>> slots;
  for (int rank = 0; rank < ranks; ++rank) {
    slots.clear();
    for (int b = 0; b < branches; ++b) {
      const Stage stage{b * ranks + (b % 2 == 0 ? rank : ranks - 1 - rank)};
      for (int m = 0; m < microbatches; ++m) {
        slots.push_back({2 * m + level[+stage], {Kind::forward, stage, Item{m}}});
        slots.push_back({2 * m + 2 * levels - 1 - level[+stage], {Kind::backward, stage, Item{m}}});
      }
    }
    std::stable_sort(slots.begin(), slots.end(),
                     [](const auto& a, const auto& b) { return a.first < b.first; });
    auto& list = orders.ranks.emplace_back();
    for (const auto& [slot, order] : slots) list.push_back(order);
  }
  return orders;
}

/// flexpipe_orders, woven.
[[nodiscard]] inline Schedule flexpipe(const FlexpipeOptions& options) {
  return weave(
      flexpipe_orders(options.ranks, options.microbatches, options.branches, options.interactions),
      options.sizes);
}

}  // namespace heddle::inline v0::schedule
