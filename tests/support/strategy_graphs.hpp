// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// Random graphs of strategies, and the least cost of all choices by trying all.

#include <algorithm>
#include <cstddef>
#include <limits>
#include <random>
#include <vector>

#include <heddle/systems/rhino/strategy_graph.hpp>

namespace heddle::test {

/// The cost of a pair of strategies that cannot be chosen.
inline constexpr double forbidden = std::numeric_limits<double>::infinity();

/// Returns a random graph; `closed` is the share of pairs that are forbidden.
inline systems::StrategyGraph random_graph(std::mt19937_64& random, std::size_t nodes,
                                           double closed) {
  std::uniform_real_distribution<double> cost(0, 1);
  systems::StrategyGraph graph;
  for (std::size_t n = 0; n < nodes; ++n) {
    systems::StrategyGraph::Node node{.name = "node"};
    const std::size_t strategies = 1 + random() % 3;
    for (std::size_t s = 0; s < strategies; ++s) {
      node.costs.push_back(1e-4 * cost(random));
      node.bytes.push_back(1e6 * cost(random));
    }
    graph.nodes.push_back(node);
  }
  const std::size_t edges = random() % (2 * nodes);
  for (std::size_t e = 0; e < edges && nodes > 1; ++e) {
    const std::size_t from = random() % nodes;
    const std::size_t to = (from + 1 + random() % (nodes - 1)) % nodes;
    systems::StrategyGraph::Edge edge{from, to, {}};
    const std::size_t pairs = graph.nodes[from].costs.size() * graph.nodes[to].costs.size();
    for (std::size_t p = 0; p < pairs; ++p)
      edge.costs.push_back(cost(random) < closed ? forbidden : 1e-4 * cost(random));
    graph.edges.push_back(edge);
  }
  return graph;
}

/// Returns the least cost of all choices, or infinity.
inline double brute_force(const systems::StrategyGraph& graph) {
  std::vector<std::size_t> choice(graph.nodes.size());
  double least = forbidden;
  for (;;) {
    if (!graph.capacity || graph.bytes(choice) <= *graph.capacity)
      least = std::min(least, graph.cost(choice));
    std::size_t n = 0;
    while (n < choice.size() && ++choice[n] == graph.nodes[n].costs.size()) choice[n++] = 0;
    if (n == choice.size()) return least;
  }
}

}  // namespace heddle::test
