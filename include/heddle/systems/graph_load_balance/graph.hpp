// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// Graph: a directed graph as compressed sparse rows (CSR), and NodeParts, its nodes of high degree
/// divided into parts of at most a given degree.

#include <cstddef>
#include <cstdint>
#include <limits>
#include <span>
#include <vector>

#include <heddle/core/linkage.hpp>

namespace heddle::inline v0::systems {

/// The distance of a node that no path from the source reaches.
inline constexpr std::int64_t unreachable = std::numeric_limits<std::int64_t>::max();

/// A directed edge.
struct GraphEdge {
  std::int32_t from = 0;    ///< the node where it begins
  std::int32_t to = 0;      ///< the node where it ends
  std::int32_t weight = 1;  ///< its length; at least 0
};

/// Says whether a Graph stores the weights of its edges.
enum class EdgeWeights : std::uint8_t {
  left_out,  ///< every edge has length 1
  stored,    ///< one word more for each edge
};

/// A directed graph as compressed sparse rows. Self loops and parallel edges are allowed. A word is
/// a 32-bit integer, so a graph has fewer than 2^31 nodes and fewer than 2^31 edges.
struct Graph {
  std::vector<std::int32_t> offsets{0};  ///< by node: its first edge; then the number of edges
  std::vector<std::int32_t> ends;        ///< by edge: the node where it ends
  std::vector<std::int32_t> weights;     ///< by edge: its length; empty if none are stored

  /// Returns the number of nodes.
  [[nodiscard]] std::int32_t nodes() const noexcept {
    return static_cast<std::int32_t>(offsets.size()) - 1;
  }
  /// Returns the number of edges.
  [[nodiscard]] std::int64_t edges() const noexcept {
    return static_cast<std::int64_t>(ends.size());
  }
  /// Returns the number of edges that begin at `node`, which must be a node.
  [[nodiscard]] std::int32_t degree(std::int32_t node) const {
    const auto at = static_cast<std::size_t>(node);
    return offsets[at + 1] - offsets[at];
  }
  /// Returns the largest degree of all nodes. 0 if there are no nodes.
  [[nodiscard]] std::int32_t max_degree() const;
  /// Returns true if the edges have weights. A graph without edges has none.
  [[nodiscard]] bool weighted() const noexcept { return !weights.empty(); }
};

/// Returns the graph of `nodes` nodes with these edges. The edges of a node keep their order.
/// @throws contract_error if `nodes` is negative, if an edge begins or ends at no node, if there
///         are 2^31 edges or more, or if a weight is negative and weights are stored.
[[nodiscard]] Graph make_graph(std::int32_t nodes, std::span<const GraphEdge> edges,
                               EdgeWeights weights = EdgeWeights::left_out);

/// Throws contract_error if the offsets do not begin with 0, descend or do not end with the number
/// of edges, if an edge ends at no node, if there are weights for some edges only, or if a weight
/// is negative.
void check(const Graph& graph);

/// Returns the words of the compressed sparse rows: nodes + 1 offsets, and 1 word for each edge, or
/// 2 words with its weight. Takes constant time.
/// @throws contract_error if the sizes of the vectors do not fit, or if the offsets do not begin
///         with 0 or do not end with the number of edges.
[[nodiscard]] std::int64_t csr_words(const Graph& graph);

/// Returns the words of a list of coordinates (COO): 2 words for each edge, or 3 words with its
/// weight. It has no offsets.
/// @throws contract_error as csr_words().
[[nodiscard]] std::int64_t coo_words(const Graph& graph);

/// The nodes of a graph, divided into parts of at most `max_degree` edges. The parts of a node are
/// neighbours and divide its edges in order, as even_share() does. Edges stay where they are. A
/// node of degree 0 is one part without edges.
struct NodeParts {
  std::int32_t max_degree = 0;           ///< the most edges of a part
  std::vector<std::int32_t> first{0};    ///< by node: its first part; then the number of parts
  std::vector<std::int32_t> offsets{0};  ///< by part: its first edge; then the number of edges

  /// Returns the number of parts.
  [[nodiscard]] std::int64_t parts() const noexcept {
    return static_cast<std::int64_t>(offsets.size()) - 1;
  }
  /// Returns the number of parts that are not the first one of their node. This is the sum of
  /// ceil(degree / max_degree) - 1 over all nodes that have edges.
  [[nodiscard]] std::int64_t extra() const noexcept {
    return parts() - static_cast<std::int64_t>(first.size()) + 1;
  }
};

/// Returns the nodes of `graph` divided into parts of at most `max_degree` edges.
/// @throws contract_error if `max_degree` is below 1, or if there would be 2^31 parts or more.
[[nodiscard]] NodeParts split_nodes(const Graph& graph, std::int32_t max_degree);

/// Returns the largest degree for split_nodes() by a histogram of the degrees. The histogram has
/// `bins` bins of equal width from 0 to the largest degree, and a degree on the border of two bins
/// belongs to the lower one. The result is the upper end of the bin with the most nodes, rounded
/// up, and at least 1. If several bins have the most nodes, it is that of the lowest one.
/// @throws contract_error if `bins` is below 1.
[[nodiscard]] std::int32_t degree_limit(const Graph& graph, std::int32_t bins = 10);

}  // namespace heddle::inline v0::systems

#if HEDDLE_DEFINES_SYSTEMS
#include <heddle/systems/graph_load_balance/graph.ipp>
#endif
