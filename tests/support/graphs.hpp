// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// Graphs for tests of frontiers: R-MAT, a star, a grid of roads and random ones; and serial
/// references that share no code with the library.

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <queue>
#include <set>
#include <span>
#include <utility>
#include <vector>

#include <heddle/core/random.hpp>
#include <heddle/systems/graph_load_balance/frontier_balance.hpp>
#include <heddle/systems/graph_load_balance/graph.hpp>

namespace heddle::test {

/// A graph before it is stored.
struct EdgeList {
  std::int32_t nodes = 0;
  std::vector<systems::GraphEdge> edges;

  [[nodiscard]] systems::Graph graph() const {
    return systems::make_graph(nodes, edges, systems::EdgeWeights::stored);
  }
  [[nodiscard]] systems::Graph unweighted() const { return systems::make_graph(nodes, edges); }
  [[nodiscard]] std::vector<std::int64_t> degrees() const {
    std::vector<std::int64_t> degree(static_cast<std::size_t>(nodes), 0);
    for (const systems::GraphEdge& edge : edges) ++degree[static_cast<std::size_t>(edge.from)];
    return degree;
  }
};

/// 2^scale nodes, `each` edges a node, quadrants 0.57, 0.19, 0.19, 0.05; weights 0 to 99.
[[nodiscard]] inline EdgeList r_mat(int scale, std::int64_t each, std::uint64_t seed) {
  EdgeList list{std::int32_t{1} << scale, {}};
  const Random random(seed, "r_mat");
  std::uint64_t draw = 0;
  for (std::int64_t e = 0; e < each * list.nodes; ++e) {
    systems::GraphEdge edge{0, 0, static_cast<std::int32_t>(random.below(draw++, 100))};
    for (int bit = 0; bit < scale; ++bit) {
      const double u = random.uniform(draw++);
      edge.from = 2 * edge.from + (u >= 0.76 ? 1 : 0);
      edge.to = 2 * edge.to + ((u >= 0.57 && u < 0.76) || u >= 0.95 ? 1 : 0);
    }
    list.edges.push_back(edge);
  }
  return list;
}

/// A hub, node 0, with edges to and from all others.
[[nodiscard]] inline EdgeList star(std::int32_t nodes) {
  EdgeList list{nodes, {}};
  const Random random(1, "star");
  for (std::int32_t n = 1; n < nodes; ++n) {
    const auto weight = static_cast<std::int32_t>(random.below(static_cast<std::uint64_t>(n), 50));
    list.edges.push_back({0, n, weight});
    list.edges.push_back({n, 0, weight});
  }
  return list;
}

/// Crossings of streets, both ways, of lengths 1 to 20.
[[nodiscard]] inline EdgeList road_grid(std::int32_t rows, std::int32_t columns) {
  EdgeList list{rows * columns, {}};
  const Random random(1, "roads");
  const auto street = [&](std::int32_t a, std::int32_t b) {
    const auto weight = static_cast<std::int32_t>(1 + random.below(list.edges.size(), 20));
    list.edges.push_back({a, b, weight});
    list.edges.push_back({b, a, weight});
  };
  for (std::int32_t r = 0; r < rows; ++r)
    for (std::int32_t c = 0; c < columns; ++c) {
      if (c + 1 < columns) street(r * columns + c, r * columns + c + 1);
      if (r + 1 < rows) street(r * columns + c, (r + 1) * columns + c);
    }
  return list;
}

/// Up to `most` nodes and four times as many edges, with loops, parallel edges and weights 0 to 4.
[[nodiscard]] inline EdgeList random_graph(std::uint64_t seed, std::uint64_t most) {
  const Random random(seed, "graph");
  EdgeList list{static_cast<std::int32_t>(1 + random.below(0, most)), {}};
  const auto nodes = static_cast<std::uint64_t>(list.nodes);
  const std::uint64_t edges = random.below(1, 4 * nodes + 1);
  for (std::uint64_t e = 0; e < edges; ++e)
    // The minimum of two numbers, so that low nodes have high degrees.
    list.edges.push_back({static_cast<std::int32_t>(std::min(random.below(5 * e + 2, nodes),
                                                             random.below(5 * e + 3, nodes))),
                          static_cast<std::int32_t>(random.below(5 * e + 4, nodes)),
                          static_cast<std::int32_t>(random.below(5 * e + 5, 5))});
  return list;
}

/// Dijkstra's distances, with every edge of length 1 unless `weighted`.
[[nodiscard]] inline std::vector<std::int64_t> serial_distances(const EdgeList& list,
                                                                std::int32_t source,
                                                                bool weighted) {
  using Entry = std::pair<std::int64_t, std::int32_t>;
  std::vector<std::vector<systems::GraphEdge>> rows(static_cast<std::size_t>(list.nodes));
  for (const systems::GraphEdge& edge : list.edges)
    rows[static_cast<std::size_t>(edge.from)].push_back(edge);
  std::vector<std::int64_t> distance(rows.size(), systems::unreachable);
  std::priority_queue<Entry, std::vector<Entry>, std::greater<>> queue;
  distance[static_cast<std::size_t>(source)] = 0;
  queue.push({0, source});
  while (!queue.empty()) {
    const auto [at, node] = queue.top();
    queue.pop();
    if (at > distance[static_cast<std::size_t>(node)]) continue;
    for (const systems::GraphEdge& edge : rows[static_cast<std::size_t>(node)]) {
      const std::int64_t length = at + (weighted ? edge.weight : 1);
      if (length >= distance[static_cast<std::size_t>(edge.to)]) continue;
      distance[static_cast<std::size_t>(edge.to)] = length;
      queue.push({length, edge.to});
    }
  }
  return distance;
}

/// The frontiers of Bellman and Ford's rounds, each of which starts from the distances before it.
[[nodiscard]] inline std::vector<std::vector<std::int32_t>> serial_frontiers(const EdgeList& list,
                                                                             std::int32_t source,
                                                                             bool weighted) {
  std::vector<std::vector<std::int32_t>> frontiers;
  std::vector<std::int64_t> distance(static_cast<std::size_t>(list.nodes), systems::unreachable);
  distance[static_cast<std::size_t>(source)] = 0;
  for (std::set<std::int32_t> active{source}; !active.empty();) {
    frontiers.emplace_back(active.begin(), active.end());
    const std::vector<std::int64_t> before = distance;
    std::set<std::int32_t> next;
    for (const systems::GraphEdge& edge : list.edges) {
      if (!active.contains(edge.from)) continue;
      const std::int64_t length =
          before[static_cast<std::size_t>(edge.from)] + (weighted ? edge.weight : 1);
      if (length >= distance[static_cast<std::size_t>(edge.to)]) continue;
      distance[static_cast<std::size_t>(edge.to)] = length;
      next.insert(edge.to);
    }
    active = next;
  }
  return frontiers;
}

inline constexpr std::array all_balances{
    systems::FrontierBalance::nodes, systems::FrontierBalance::edges,
    systems::FrontierBalance::decomposition, systems::FrontierBalance::splitting,
    systems::FrontierBalance::hierarchy};

}  // namespace heddle::test
