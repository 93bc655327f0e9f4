// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// Definitions of flexpipe.hpp.

#include <algorithm>
#include <utility>
#include <vector>

#include <heddle/core/contract.hpp>
#include <heddle/core/linkage.hpp>
#include <heddle/core/text.hpp>
#include <heddle/schedule/generator/flexpipe.hpp>
#include <heddle/schedule/order/stage_levels.hpp>
#include <heddle/schedule/order/weave.hpp>

namespace heddle::inline v0::schedule {

HEDDLE_INLINE StageGraph branch_graph(
    int ranks, int branches, const std::vector<FlexpipeOptions::Interaction>& interactions) {
  constexpr const char* where = "heddle::schedule::branch_graph";
  expects(ranks >= 1 && branches >= 1, [&] {
    return ErrorInfo{where, "a model needs at least one branch with at least one stage",
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
              return ErrorInfo{
                  where, "an interaction must connect existing stages of two branches",
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

HEDDLE_INLINE Orders flexpipe(int ranks, int microbatches, int branches,
                              const std::vector<FlexpipeOptions::Interaction>& interactions) {
  expects(microbatches >= 1, [&] {
    return ErrorInfo{"heddle::schedule::flexpipe", "a step needs at least one microbatch",
                     text("microbatches = ", microbatches)};
  });
  Orders orders{text("FlexPipe P=", ranks, " M=", microbatches),
                {},
                branch_graph(ranks, branches, interactions)};
  const std::vector<int> level = heddle::impl::stage_levels(orders.graph);
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

HEDDLE_INLINE Schedule flexpipe(const FlexpipeOptions& options) {
  return weave(
      flexpipe(options.ranks, options.microbatches, options.branches, options.interactions),
      options.sizes);
}

}  // namespace heddle::inline v0::schedule
