// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// exact_orders(): the shortest orders of a small chain, by branch and bound.

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include <heddle/core/index.hpp>
#include <heddle/core/linkage.hpp>
#include <heddle/plan/impl/list_problem.hpp>
#include <heddle/schedule/action.hpp>
#include <heddle/schedule/order/orders.hpp>
#include <heddle/schedule/order/stage_graph.hpp>

namespace heddle::inline v0::plan::impl {

/// A chain whose microbatches all cost the same. A computation of a stage is numbered 0 for F, 1
/// for I or a whole backward, and 2 for W.
struct SmallChain {
  struct Part {
    std::size_t rank = 0;
    std::int64_t keeps = 1;  ///< activations from its F to its W or whole backward
    double takes[3] = {0, 0, 0};
    double arrives[2] = {0, 0};  ///< time from the end of the input to the start of F and of I
  };
  std::vector<Part> stages = {};
  std::vector<Item> items = {};
  std::size_t ranks = 0;
  std::vector<std::int64_t> caps = {};  ///< most activations of each rank; empty: no limit
  bool split = false;
};

/// Returns the chain of a problem, or nothing if an exact search does not apply: the ranks times
/// the microbatches are more than 24, the stages are no chain with one rank each, a computation
/// takes no time, microbatches cost different times, or messages occupy their channels.
template <class Time>
[[nodiscard]] std::optional<SmallChain> small_chain(const Orders& orders,
                                                    const ListProblem<Time>& problem,
                                                    const std::vector<std::int64_t>& caps,
                                                    const std::vector<std::int64_t>& activations) {
  const std::size_t stages = problem.stages;
  if (orders.graph != StageGraph::chain(static_cast<int>(stages))) return std::nullopt;
  SmallChain chain{.stages = std::vector<SmallChain::Part>(stages),
                   .ranks = problem.ranks,
                   .caps = problem.trains ? caps : std::vector<std::int64_t>{}};
  std::vector<std::array<std::size_t, 3>> seen(stages);
  for (std::size_t n = 0; n < problem.nodes.size(); ++n) {
    const auto& node = problem.nodes[n];
    const auto takes = static_cast<double>(node.takes);
    if (node.moves) {
      if (takes != 0) return std::nullopt;
      continue;
    }
    SmallChain::Part& part = chain.stages[+node.order.stage];
    const bool whole = node.order.kind == Kind::backward;
    const std::size_t kind = whole ? 1 : static_cast<std::size_t>(node.order.kind);
    std::size_t& count = seen[+node.order.stage][kind];
    if (count > 0 && (part.takes[kind] != takes || part.rank != node.queue)) return std::nullopt;
    if (!(takes > 0) || (kind > 0 && part.rank != node.queue)) return std::nullopt;
    part.takes[kind] = takes;
    part.rank = node.queue;
    if (!activations.empty()) part.keeps = activations[+node.order.stage];
    ++count;
    if (kind == 0 && node.order.stage == Stage{0}) chain.items.push_back(node.order.item);
    chain.split = chain.split || kind == 2;
  }
  const std::size_t items = chain.items.size();
  if (problem.ranks * items > 24) return std::nullopt;
  for (const auto& each : seen)
    if (each[0] != items || each[1] != items || each[2] != (chain.split ? items : 0))
      return std::nullopt;
  // A message may have two readers: the stage behind, and its backward, which does not wait for it.
  for (const auto& from : problem.nodes) {
    if (from.moves) continue;
    const auto number = static_cast<std::size_t>(&from - problem.nodes.data());
    for (std::uint32_t e = problem.first[number]; e < problem.first[number + 1]; ++e) {
      const auto& node = problem.nodes[problem.next[e]];
      const bool forward = from.order.kind == Kind::forward;
      const std::size_t stage = +from.order.stage + (forward ? 1 : static_cast<std::size_t>(-1));
      if (!node.moves || stage >= stages) continue;
      const auto latency = static_cast<double>(node.latency);
      double& arrives = chain.stages[stage].arrives[forward ? 0 : 1];
      if (arrives != 0 && arrives != latency) return std::nullopt;
      arrives = latency;
    }
  }
  std::ranges::sort(chain.items);
  return chain;
}

/// The result of an exact search.
struct ExactOrders {
  std::vector<std::vector<Order>> ranks;  ///< the shortest lists; empty if none was shorter
  bool complete = false;                  ///< the search ended within its branches
};

/// Searches for the shortest lists of `chain` that take less than `makespan`, in at most `branches`
/// branches. Microbatches keep their order, which no exchange of microbatches can improve because
/// they cost the same.
[[nodiscard]] ExactOrders exact_orders(const SmallChain& chain, double makespan,
                                       std::int64_t branches);

}  // namespace heddle::inline v0::plan::impl

#if HEDDLE_DEFINES_PLAN
#include <heddle/plan/impl/exact_orders.ipp>
#endif
