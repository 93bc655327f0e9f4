// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// Definitions of graph.hpp.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include <heddle/core/contract.hpp>
#include <heddle/core/text.hpp>
#include <heddle/systems/graph_load_balance/graph.hpp>
#include <heddle/systems/graph_load_balance/impl/checked_graph.hpp>

namespace heddle::inline v0::systems {
namespace impl {

inline void expect_node(const char* where, std::size_t edge, const char* verb, std::int32_t node,
                        std::int32_t nodes) {
  expects(node >= 0 && node < nodes, [&] {
    return ErrorInfo{where, text("edge ", edge, " ", verb, " at node ", node),
                     text("the graph has ", nodes, " nodes, and the first one is node 0"),
                     "Number the nodes from 0, or give the number of all nodes"};
  });
}

inline void expect_weight(const char* where, std::size_t edge, std::int32_t weight) {
  expects(weight >= 0, [&] {
    return ErrorInfo{where, text("edge ", edge, " has the weight ", weight),
                     "shortest paths are defined for weights of at least 0 here",
                     "Add a constant to all weights only if all paths have equally many edges"};
  });
}

}  // namespace impl

HEDDLE_INLINE std::int32_t Graph::max_degree() const {
  std::int32_t most = 0;
  for (std::int32_t node = 0; node < nodes(); ++node) most = std::max(most, degree(node));
  return most;
}

HEDDLE_INLINE Graph make_graph(std::int32_t nodes, std::span<const GraphEdge> edges,
                               EdgeWeights weights) {
  constexpr const char* where = "heddle::systems::make_graph";
  expects(nodes >= 0 && nodes < impl::most_words, [&] {
    return ErrorInfo{where, "the number of nodes is out of range",
                     text("nodes = ", nodes, ", expected 0 to ", impl::most_words - 1)};
  });
  expects(edges.size() <= static_cast<std::size_t>(impl::most_words), [&] {
    return ErrorInfo{where, "there are too many edges",
                     text("edges = ", edges.size(), ", expected at most ", impl::most_words)};
  });
  const bool stored = weights == EdgeWeights::stored;
  Graph graph;
  graph.offsets.assign(static_cast<std::size_t>(nodes) + 1, 0);
  for (std::size_t e = 0; e < edges.size(); ++e) {
    impl::expect_node(where, e, "begins", edges[e].from, nodes);
    impl::expect_node(where, e, "ends", edges[e].to, nodes);
    if (stored) impl::expect_weight(where, e, edges[e].weight);
    ++graph.offsets[static_cast<std::size_t>(edges[e].from) + 1];
  }
  for (std::size_t n = 1; n < graph.offsets.size(); ++n) graph.offsets[n] += graph.offsets[n - 1];
  graph.ends.resize(edges.size());
  if (stored) graph.weights.resize(edges.size());
  std::vector<std::int32_t> next(graph.offsets.begin(), graph.offsets.end() - 1);
  for (const GraphEdge& edge : edges) {
    const auto at = static_cast<std::size_t>(next[static_cast<std::size_t>(edge.from)]++);
    graph.ends[at] = edge.to;
    if (stored) graph.weights[at] = edge.weight;
  }
  return graph;
}

HEDDLE_INLINE void check(const Graph& graph) {
  constexpr const char* where = "heddle::systems::Graph";
  impl::expect_sizes(graph);
  for (std::int32_t node = 0; node < graph.nodes(); ++node) impl::expect_offsets(graph, node);
  for (std::size_t e = 0; e < graph.ends.size(); ++e)
    impl::expect_node(where, e, "ends", graph.ends[e], graph.nodes());
  for (std::size_t e = 0; e < graph.weights.size(); ++e)
    impl::expect_weight(where, e, graph.weights[e]);
}

HEDDLE_INLINE std::int64_t csr_words(const Graph& graph) {
  impl::expect_sizes(graph);
  return graph.nodes() + 1 + graph.edges() * (graph.weighted() ? 2 : 1);
}

HEDDLE_INLINE std::int64_t coo_words(const Graph& graph) {
  impl::expect_sizes(graph);
  return graph.edges() * (graph.weighted() ? 3 : 2);
}

HEDDLE_INLINE NodeParts split_nodes(const Graph& graph, std::int32_t max_degree) {
  check(graph);
  return impl::parts_of(graph, max_degree);
}

HEDDLE_INLINE std::int32_t degree_limit(const Graph& graph, std::int32_t bins) {
  expects(bins >= 1, [&] {
    return ErrorInfo{"heddle::systems::degree_limit", "the histogram has no bins",
                     text("bins = ", bins, ", expected at least 1")};
  });
  check(graph);
  return impl::limit_of(graph, bins);
}

}  // namespace heddle::inline v0::systems
