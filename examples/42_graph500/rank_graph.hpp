// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// Kernel 1 of the benchmark: the edges become compressed sparse rows, in blocks of vertices over
/// the ranks. exchanged() also carries the messages of the searches.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include <Kokkos_Core.hpp>

#include <heddle/comm/communicator.hpp>
#include <heddle/core/contract.hpp>
#include <heddle/core/text.hpp>
#include <heddle/layout/share.hpp>
#include <heddle/systems/graph_load_balance/graph.hpp>

#include "edges.hpp"
#include "exchange.hpp"

namespace graph500 {

/// The vertices in blocks over the ranks. A block is a number of whole words of 64 vertices, so
/// that the bits of a rank's vertices are words of its own.
struct Blocks {
  std::int64_t vertices = 0;
  int ranks = 1;

  [[nodiscard]] KOKKOS_FUNCTION std::int64_t words() const { return (vertices + 63) / 64; }
  /// Returns the rank that owns `vertex`. This is the inverse of even_share().
  [[nodiscard]] KOKKOS_FUNCTION int owner(std::int32_t vertex) const {
    const std::int64_t word = vertex / 64, each = words() / ranks, extra = words() % ranks;
    if (word < extra * (each + 1)) return static_cast<int>(word / (each + 1));
    return static_cast<int>(extra + (word - extra * (each + 1)) / each);
  }
  /// Returns the words of `rank`.
  [[nodiscard]] heddle::Share words_of(int rank) const {
    return heddle::even_share(static_cast<std::size_t>(words()), static_cast<std::size_t>(ranks),
                              static_cast<std::size_t>(rank));
  }
  /// Returns the vertices of `rank`.
  [[nodiscard]] heddle::Share vertices_of(int rank) const {
    const heddle::Share share = words_of(rank);
    const auto all = static_cast<std::size_t>(vertices);
    const std::size_t first = std::min(64 * share.first, all);
    return {first, std::min(64 * share.end(), all) - first};
  }
};

/// Throws contract_error if a search could not number the vertices or the distances.
inline void check(const EdgeList& list, int ranks) {
  heddle::expects(list.vertices >= ranks, [&] {
    return heddle::ErrorInfo{
        "graph500", "there are more ranks than vertices",
        heddle::text(ranks, " ranks, and the graph has ", list.vertices, " vertices"),
        heddle::text("start at most ", list.vertices, " ranks, or give a larger graph")};
  });
  heddle::expects(list.vertices <= (std::int64_t{1} << 31) / list.heaviest, [&] {
    return heddle::ErrorInfo{
        "graph500", "a distance may have more than 31 bits",
        heddle::text("there are ", list.vertices, " vertices, and a weight is ", list.heaviest),
        "scale the weights down"};
  });
}

/// Sends `counts[q]` elements of `send` to each rank q. They stand there in the order of the ranks.
/// Returns the elements that the ranks sent to this one, in the same order.
template <class Exec, class View>
[[nodiscard]] View exchanged(const Exec& exec, const View& send,
                             const std::vector<std::size_t>& counts,
                             const heddle::Communicator& comm) {
  return examples::Exchange(counts, comm).there(exec, send);
}

/// Returns the graph whose rows are those of this rank's vertices, in ascending order. Loops are
/// left out; of parallel edges the lightest stays. Other vertices have empty rows.
[[nodiscard]] inline heddle::systems::Graph rank_graph(const EdgeList& list, const Blocks& blocks,
                                                       const heddle::Communicator& comm) {
  std::vector<std::size_t> counts(static_cast<std::size_t>(comm.size()), 0);
  const auto each = [&](auto&& take) {
    for (const Edge& edge : list.mine) {
      if (edge.from == edge.to) continue;
      take(edge);
      take(Edge{edge.to, edge.from, edge.weight});
    }
  };
  const auto owner = [&](const Edge& edge) {
    return static_cast<std::size_t>(blocks.owner(edge.from));
  };
  each([&](const Edge& edge) { ++counts[owner(edge)]; });
  std::vector<std::size_t> at(counts.size(), 0);
  for (std::size_t q = 1; q < at.size(); ++q) at[q] = at[q - 1] + counts[q - 1];
  using Edges = Kokkos::View<Edge*, Kokkos::HostSpace>;
  const Edges send(Kokkos::view_alloc(Kokkos::WithoutInitializing, "graph500::edges"),
                   at.back() + counts.back());
  each([&](const Edge& edge) { send(at[owner(edge)]++) = edge; });
  const Edges received = exchanged(Kokkos::DefaultHostExecutionSpace{}, send, counts, comm);

  std::vector<Edge> edges(received.data(), received.data() + received.extent(0));
  std::sort(edges.begin(), edges.end(), [](const Edge& a, const Edge& b) {
    return std::tie(a.from, a.to, a.weight) < std::tie(b.from, b.to, b.weight);
  });
  const auto last = std::unique(edges.begin(), edges.end(), [](const Edge& a, const Edge& b) {
    return a.from == b.from && a.to == b.to;
  });
  edges.erase(last, edges.end());
  return heddle::systems::make_graph(static_cast<std::int32_t>(list.vertices), edges,
                                     heddle::systems::EdgeWeights::stored);
}

}  // namespace graph500
