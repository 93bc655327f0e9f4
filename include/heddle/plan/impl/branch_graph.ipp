// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// Definitions of branch_graph.hpp.

#include <algorithm>
#include <cstddef>
#include <numeric>
#include <span>
#include <vector>

#include <heddle/core/linkage.hpp>
#include <heddle/core/text.hpp>
#include <heddle/plan/impl/branch_graph.hpp>
#include <heddle/schedule/action.hpp>
#include <heddle/schedule/order/stage_levels.hpp>

namespace heddle::inline v0::plan::impl {

HEDDLE_INLINE std::vector<Branch> branches_of(const StageGraph& graph) {
  const std::vector<int> levels = heddle::impl::stage_levels(graph);
  const std::size_t stages = levels.size();
  std::vector<std::vector<std::size_t>> inputs(stages);
  std::vector<std::size_t> readers(stages, 0);
  for (const StageGraph::Edge& edge : graph.edges) {
    if (edge.at != Kind::forward) continue;
    inputs[+edge.to].push_back(+edge.from);
    ++readers[+edge.from];
  }
  std::vector<std::size_t> sorted(stages);
  std::iota(sorted.begin(), sorted.end(), std::size_t{0});
  std::ranges::stable_sort(sorted, {}, [&](std::size_t s) { return levels[s]; });
  std::vector<Branch> branches;
  std::vector<std::size_t> branch_of(stages);
  for (const std::size_t s : sorted) {
    if (inputs[s].size() == 1 && readers[inputs[s].front()] == 1) {
      branch_of[s] = branch_of[inputs[s].front()];
    } else {
      branch_of[s] = branches.size();
      branches.emplace_back();
      for (const std::size_t from : inputs[s]) branches.back().inputs.push_back(branch_of[from]);
    }
    branches[branch_of[s]].stages.push_back(Stage{s});
  }
  return branches;
}

HEDDLE_INLINE Orders branch_orders(const StageGraph& graph, const std::vector<Branch>& branches,
                                   std::span<const std::size_t> order,
                                   std::span<const std::size_t> worker_of, int workers) {
  Orders orders{
      text(branches.size(), " branches on ", workers, workers == 1 ? " worker" : " workers"),
      std::vector<std::vector<Order>>(static_cast<std::size_t>(workers)), graph};
  for (const std::size_t b : order)
    for (const Stage stage : branches[b].stages)
      orders.ranks[worker_of[b]].push_back({Kind::forward, stage, Item{0}});
  return orders;
}

}  // namespace heddle::inline v0::plan::impl
