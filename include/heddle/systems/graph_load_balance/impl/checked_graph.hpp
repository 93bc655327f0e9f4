// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// Checks of a part of a Graph, and functions of a graph that was checked.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <vector>

#include <heddle/core/contract.hpp>
#include <heddle/core/text.hpp>
#include <heddle/layout/share.hpp>
#include <heddle/systems/graph_load_balance/graph.hpp>

namespace heddle::inline v0::systems::impl {

inline constexpr std::int64_t most_words = std::numeric_limits<std::int32_t>::max();

/// Checks in constant time the sizes of the vectors of a graph, and where its offsets begin and
/// end.
inline void expect_sizes(const Graph& graph) {
  constexpr const char* where = "heddle::systems::Graph";
  expects(!graph.offsets.empty() && graph.offsets.front() == 0 &&
              graph.offsets.size() <= static_cast<std::size_t>(most_words) &&
              graph.offsets.back() == graph.edges(),
          [&] {
            return ErrorInfo{where, "the offsets do not lead from 0 to the number of edges",
                             text("there are ", graph.offsets.size(), " offsets and ",
                                  graph.ends.size(), " edges"),
                             "Use make_graph()"};
          });
  expects(graph.weights.empty() || graph.weights.size() == graph.ends.size(), [&] {
    return ErrorInfo{where, "there are weights for some edges only",
                     text(graph.weights.size(), " weights and ", graph.ends.size(), " edges"),
                     "Give a weight for each edge, or none"};
  });
}

/// Checks the offsets of the edges of `node`, which must be a node.
inline void expect_offsets(const Graph& graph, std::int32_t node) {
  const auto n = static_cast<std::size_t>(node);
  const std::int32_t begin = graph.offsets[n], end = graph.offsets[n + 1];
  expects(begin >= 0 && begin <= end && end <= graph.edges(), [&] {
    return ErrorInfo{
        "heddle::systems::Graph",
        begin > end ? text("the offsets descend behind node ", n)
                    : text("the edges of node ", n, " do not exist"),
        text(begin, " is followed by ", end, ", and there are ", graph.edges(), " edges"),
        "Use make_graph()"};
  });
}

/// Returns split_nodes() of a graph that was checked.
[[nodiscard]] inline NodeParts parts_of(const Graph& graph, std::int32_t max_degree) {
  constexpr const char* where = "heddle::systems::split_nodes";
  expects(max_degree >= 1, [&] {
    return ErrorInfo{where, "a part of a node has no edges",
                     text("max_degree = ", max_degree, ", expected at least 1"),
                     "degree_limit() returns one"};
  });
  NodeParts split;
  split.max_degree = max_degree;
  split.first.reserve(graph.offsets.size());
  std::int64_t parts = 0;
  for (std::int32_t node = 0; node < graph.nodes(); ++node) {
    const auto degree = static_cast<std::size_t>(graph.degree(node));
    const auto most = static_cast<std::size_t>(max_degree);
    const std::size_t count = std::max<std::size_t>(1, (degree + most - 1) / most);
    parts += static_cast<std::int64_t>(count);
    expects(parts <= most_words, [&] {
      return ErrorInfo{where, "there are too many parts",
                       text("max_degree = ", max_degree, " makes more than ", most_words,
                            " parts of ", graph.nodes(), " nodes"),
                       "Raise max_degree"};
    });
    const std::int32_t begin = graph.offsets[static_cast<std::size_t>(node)];
    for (std::size_t part = 0; part < count; ++part)
      split.offsets.push_back(begin +
                              static_cast<std::int32_t>(even_share(degree, count, part).end()));
    split.first.push_back(static_cast<std::int32_t>(parts));
  }
  return split;
}

/// Returns degree_limit() of a graph that was checked.
[[nodiscard]] inline std::int32_t limit_of(const Graph& graph, std::int32_t bins = 10) {
  const std::int64_t most = graph.max_degree();
  if (most == 0) return 1;
  std::vector<std::int64_t> nodes(static_cast<std::size_t>(bins), 0);
  for (std::int32_t node = 0; node < graph.nodes(); ++node) {
    const std::int64_t degree = graph.degree(node);
    const std::int64_t bin = std::max<std::int64_t>(0, (degree * bins + most - 1) / most - 1);
    ++nodes[static_cast<std::size_t>(bin)];
  }
  const auto fullest = std::max_element(nodes.begin(), nodes.end()) - nodes.begin();
  return static_cast<std::int32_t>(((fullest + 1) * most + bins - 1) / bins);
}

}  // namespace heddle::inline v0::systems::impl
