// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// list_bound(): a lower bound on the makespan of all orders with given computations.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

#include <heddle/core/index.hpp>
#include <heddle/plan/impl/list_problem.hpp>
#include <heddle/schedule/order/orders.hpp>
#include <heddle/schedule/order/stage_graph.hpp>

namespace heddle::inline v0::plan::impl {

/// Returns a lower bound. It is the maximum of three: the longest path of dependencies; for every
/// rank and every group of its computations, the earliest start, the work and the shortest rest
/// behind it; and, for a chain under a cap, the time for which the activations of a rank are kept
/// in any order, divided by its cap. `caps` are those of the ranks, empty for none. Types of time
/// without a division have no third part.
template <class Time>
[[nodiscard]] Time list_bound(const ListProblem<Time>& problem, const StageGraph& graph,
                              const std::vector<std::int64_t>& caps,
                              const std::vector<std::int64_t>& activations) {
  const auto& nodes = problem.nodes;
  // The longest path before a node, and behind it. A node comes after its inputs.
  std::vector<Time> head(nodes.size(), Time{}), tail(nodes.size(), Time{});
  const auto whole = [&](std::size_t n) { return nodes[n].takes + nodes[n].latency; };
  for (std::size_t n = 0; n < nodes.size(); ++n)
    for (std::uint32_t e = problem.first[n]; e < problem.first[n + 1]; ++e)
      head[problem.next[e]] = std::max(head[problem.next[e]], Time(head[n] + whole(n)));
  Time bound{};
  for (std::size_t n = nodes.size(); n-- > 0;) {
    for (std::uint32_t e = problem.first[n]; e < problem.first[n + 1]; ++e)
      tail[n] = std::max(tail[n], Time(whole(problem.next[e]) + tail[problem.next[e]]));
    bound = std::max(bound, Time(head[n] + whole(n) + tail[n]));
  }
  std::vector<std::vector<std::uint32_t>> of(problem.ranks);
  for (std::uint32_t n = 0; n < nodes.size(); ++n)
    if (!nodes[n].moves) of[nodes[n].queue].push_back(n);
  for (auto& list : of) {
    // Groups of all nodes with a rest, or a start, of at least that of `n`.
    for (const bool by_tail : {true, false}) {
      const auto& key = by_tail ? tail : head;
      const auto& other = by_tail ? head : tail;
      std::ranges::stable_sort(list, [&](auto a, auto b) { return key[b] < key[a]; });
      Time work{};
      Time least{};
      for (std::size_t i = 0; i < list.size(); ++i) {
        least = i == 0 ? other[list[i]] : std::min(least, other[list[i]]);
        work = work + nodes[list[i]].takes;
        bound = std::max(bound, Time(least + work + key[list[i]]));
      }
    }
  }
  if constexpr (requires(Time time) { time* time / time; }) {
    if (caps.empty() || !problem.trains || graph != StageGraph::chain(graph.stages)) return bound;
    for (std::size_t rank = 0; rank < of.size(); ++rank) {
      const auto& list = of[rank];
      if (list.empty() || caps[rank] < 1) continue;
      Time kept{};
      Time first = head[list.front()];
      for (const std::uint32_t n : list) {
        const Order& order = nodes[n].order;
        const auto each = static_cast<Time>(activations.empty() ? 1 : activations[+order.stage]);
        // In a chain, the path from an F to the W or B that releases it is the longest one.
        if (order.kind == Kind::forward) {
          kept = kept - each * head[n];
          first = std::min(first, head[n]);
        } else if (order.kind != Kind::backward_input) {
          kept = kept + each * Time(head[n] + nodes[n].takes);
        }
      }
      bound = std::max(bound, Time(first + kept / Time(caps[rank])));
    }
  }
  return bound;
}

}  // namespace heddle::inline v0::plan::impl
