// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
// ranks: 1 2 3 4

// The searches of example 42 over ranks against Dijkstra's algorithm, and its validation against a
// judgement by those distances, on results of which a number was changed.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

#include <catch2/catch_test_macros.hpp>
#include <mpi.h>

#include <heddle/comm/communicator.hpp>
#include <heddle/core/random.hpp>
#include <heddle/layout/share.hpp>
#include <heddle/systems/graph_load_balance/graph.hpp>

#include "../../../examples/42_graph500/edges.hpp"
#include "../../../examples/42_graph500/rank_graph.hpp"
#include "../../../examples/42_graph500/search.hpp"
#include "../../../examples/42_graph500/validation.hpp"
#include "support/cases.hpp"
#include "support/graphs.hpp"

namespace test_graph500_search {

namespace hd = heddle;
using hd::test::serial_distances;

namespace {

/// An undirected random graph: in both directions for the serial program, and as the example has
/// it.
struct Drawn {
  hd::test::EdgeList both;
  graph500::EdgeList list;
  std::int32_t root = 0;

  Drawn(std::uint64_t seed, const hd::Communicator& comm) {
    const hd::test::EdgeList one = hd::test::random_graph(seed, 300);
    both.nodes = std::max(one.nodes, comm.size());
    list.vertices = both.nodes;
    list.edges = static_cast<std::int64_t>(one.edges.size());
    list.heaviest = 5;
    const hd::Share share = hd::even_share(one.edges.size(), static_cast<std::size_t>(comm.size()),
                                           static_cast<std::size_t>(+comm.rank()));
    for (std::size_t e = 0; e < one.edges.size(); ++e) {
      hd::systems::GraphEdge edge = one.edges[e];
      ++edge.weight;  // at least 1
      both.edges.push_back(edge);
      both.edges.push_back({edge.to, edge.from, edge.weight});
      if (e >= share.first && e < share.end()) list.mine.push_back(edge);
    }
    const hd::Random random(seed, "root");
    root = static_cast<std::int32_t>(random.below(0, static_cast<std::uint64_t>(both.nodes)));
  }

  /// The distances as a result has them.
  [[nodiscard]] std::vector<std::int64_t> distances(bool weighted) const {
    std::vector<std::int64_t> all = serial_distances(both, root, weighted);
    std::ranges::replace(all, hd::systems::unreachable, std::int64_t{-1});
    return all;
  }
  /// Whether the distances are the least, and an edge of the right length leads to each parent.
  [[nodiscard]] bool judges(const graph500::Tree& tree, bool weighted) const {
    if (tree.distances != distances(weighted)) return false;
    std::vector<bool> has(tree.parents.size(), false);
    for (const hd::systems::GraphEdge& edge : both.edges) {
      const auto to = static_cast<std::size_t>(edge.to);
      if (tree.parents[to] == edge.from && tree.distances[to] >= 0 &&
          tree.distances[static_cast<std::size_t>(edge.from)] + (weighted ? edge.weight : 1) ==
              tree.distances[to])
        has[to] = true;
    }
    for (std::size_t v = 0; v < has.size(); ++v) {
      const bool is_root = static_cast<std::int32_t>(v) == root;
      if (is_root ? tree.parents[v] != root
                  : (tree.parents[v] != -1 || tree.distances[v] != -1) && !has[v])
        return false;
    }
    return true;
  }
};

graph500::Tree result(const graph500::Search& search, std::int32_t root) {
  graph500::Tree tree{root, {}, {}};
  for (const std::int64_t value : search.gathered()) {
    tree.parents.push_back(value == graph500::unknown ? -1 : value & 0x7fffffff);
    tree.distances.push_back(value == graph500::unknown ? -1 : value >> 32);
  }
  return tree;
}

}  // namespace

TEST_CASE("searches over ranks find Dijkstra's distances, and validation judges as they do",
          "[graph]") {
  const hd::Communicator comm(MPI_COMM_WORLD);
  std::uint64_t reached_all = 0, not_all = 0, bottom_up = 0, still_valid = 0, invalid = 0;
  for (std::uint64_t seed = 0; seed < hd::test::cases(24, 20'000); ++seed) {
    const Drawn drawn(seed, comm);
    const graph500::Blocks blocks{drawn.list.vertices, comm.size()};
    const hd::systems::Graph graph = graph500::rank_graph(drawn.list, blocks, comm);
    const hd::Random random(seed, "choices");
    const auto balance = hd::test::all_balances[random.below(0, 5)];
    const auto direction = static_cast<graph500::Direction>(random.below(1, 3));
    graph500::Search search(graph, blocks, comm, {.balance = balance});
    for (const bool weighted : {false, true}) {
      const graph500::Counts counts =
          weighted
              ? search.shortest_paths(drawn.root, static_cast<std::int64_t>(1 + random.below(2, 9)))
              : search.breadth_first(drawn.root, direction);
      bottom_up += counts.bottom_up > 0 ? 1u : 0u;
      const graph500::Tree tree = result(search, drawn.root);
      CAPTURE(seed, weighted, drawn.root, static_cast<int>(balance), static_cast<int>(direction));
      REQUIRE(tree.distances == drawn.distances(weighted));
      REQUIRE(drawn.judges(tree, weighted));
      REQUIRE(graph500::validate(tree, drawn.list, weighted, comm).valid());
      const bool all = std::ranges::find(tree.distances, std::int64_t{-1}) == tree.distances.end();
      ++(all ? reached_all : not_all);
      for (std::uint64_t change = 0; change < 8; ++change) {
        graph500::Tree changed = tree;
        const std::uint64_t draw = 100 + 10 * change + (weighted ? 5 : 0);
        const auto count = static_cast<std::uint64_t>(drawn.list.vertices);
        auto& numbers = random.below(draw, 3) == 0 ? changed.distances : changed.parents;
        std::int64_t& number = numbers[random.below(draw + 1, count)];
        number = &numbers == &changed.parents
                     ? static_cast<std::int64_t>(random.below(draw + 2, count + 2)) - 1
                     : number + static_cast<std::int64_t>(random.below(draw + 2, 3)) - 1;
        const bool valid = drawn.judges(changed, weighted);
        CAPTURE(change, draw);
        REQUIRE(graph500::validate(changed, drawn.list, weighted, comm).valid() == valid);
        ++(valid ? still_valid : invalid);
      }
    }
  }
  REQUIRE(reached_all > 0);
  REQUIRE(not_all > 0);
  REQUIRE(bottom_up > 0);
  REQUIRE(still_valid > 0);
  REQUIRE(invalid > 0);
}

}  // namespace test_graph500_search
