// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
// kokkos: yes

// Breadth-first search and shortest paths on graphs: every balance policy against serial
// references, its loads against those that are computed without a kernel, and its errors.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <vector>

#include <Kokkos_Core.hpp>
#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>

#include <heddle/core/error.hpp>
#include <heddle/device/mirror.hpp>
#include <heddle/systems/graph_load_balance/graph.hpp>
#include <heddle/systems/graph_load_balance/graph_traversal.hpp>

#include "space.hpp"
#include "support/cases.hpp"
#include "support/complaint.hpp"
#include "support/graphs.hpp"

namespace test_graph_traversal {

using namespace heddle::test;
using Catch::Matchers::ContainsSubstring;
using Exec = examples::Space;
using Traversal = heddle::systems::GraphTraversal<Exec>;
using heddle::systems::FrontierBalance;
using heddle::systems::FrontierLoad;
using heddle::systems::FrontierOptions;
using heddle::systems::FrontierRun;

namespace {

std::vector<std::int64_t> host_distances(const Traversal& traversal) {
  const auto view = traversal.distances();
  const Kokkos::View<std::int64_t*, Exec::memory_space> copy("copy", view.extent(0));
  Kokkos::deep_copy(copy, view);
  const auto mirror = heddle::host_mirror(copy);
  Kokkos::deep_copy(mirror, copy);
  std::vector<std::int64_t> values;
  for (std::size_t n = 0; n < mirror.extent(0); ++n) values.push_back(mirror(n));
  return values;
}

/// What a serial program computes.
struct Reference {
  std::vector<std::vector<std::int32_t>> frontiers;
  std::vector<std::int64_t> distances;

  Reference(const EdgeList& list, std::int32_t source, bool weighted)
      : frontiers(serial_frontiers(list, source, weighted)),
        distances(serial_distances(list, source, weighted)) {}

  /// The launches that the layout room predicts for the frontiers of the serial rounds.
  [[nodiscard]] std::vector<heddle::systems::FrontierLoad> launches(
      const heddle::systems::Graph& graph, const heddle::systems::FrontierOptions& options) const {
    std::vector<heddle::systems::FrontierLoad> all;
    for (const auto& frontier : frontiers)
      for (const auto& load : heddle::systems::frontier_loads(graph, frontier, options))
        all.push_back(heddle::systems::summed_load(load));
    return all;
  }
};

void check_all(const EdgeList& list, std::int32_t source, std::int64_t workers,
               std::int32_t max_degree) {
  const heddle::systems::Graph graph = list.graph();
  const Reference plain(list, source, false), lengths(list, source, true);
  for (const heddle::systems::FrontierBalance balance : all_balances) {
    const heddle::systems::FrontierOptions options{balance, max_degree, workers};
    INFO("policy " << static_cast<int>(balance) << ", " << list.nodes << " nodes, "
                   << list.edges.size() << " edges, source " << source);
    Traversal traversal(Exec{}, graph, options);
    REQUIRE(traversal.words() == heddle::systems::graph_words(graph, options));
    for (const bool weighted : {true, false}) {  // nothing is left of the first call
      const Reference& expected = weighted ? lengths : plain;
      const heddle::systems::FrontierRun run =
          weighted ? traversal.shortest_paths(source) : traversal.breadth_first(source);
      REQUIRE(host_distances(traversal) == expected.distances);
      REQUIRE(run.steps == static_cast<std::int64_t>(expected.frontiers.size()));
      REQUIRE(run.launches == expected.launches(graph, options));
    }
  }
}

}  // namespace

TEST_CASE("every policy computes the serial distances", "[graph]") {
  check_all(r_mat(9, 8, 1), 0, 64, 16);
  check_all(star(300), 0, 7, 10);
  check_all(star(300), 299, 7, 10);
  check_all(road_grid(5, 9), 5, 16, 3);
}

TEST_CASE("random graphs with loops, parallel edges and zero weights", "[graph]") {
  std::uint64_t reached_all = 0, not_all = 0;
  for (std::uint64_t seed = 0; seed < cases(12, 20'000); ++seed) {
    const EdgeList list = random_graph(seed, 40);
    const heddle::Random random(seed, "choice");
    const auto source =
        static_cast<std::int32_t>(random.below(0, static_cast<std::uint64_t>(list.nodes)));
    check_all(list, source, static_cast<std::int64_t>(1 + random.below(1, 20)),
              static_cast<std::int32_t>(1 + random.below(2, 6)));
    const auto distance = serial_distances(list, source, true);
    const bool all = std::ranges::find(distance, heddle::systems::unreachable) == distance.end();
    ++(all ? reached_all : not_all);
  }
  REQUIRE(reached_all > 0);
  REQUIRE(not_all > 0);
}

TEST_CASE("small and extreme graphs", "[graph]") {
  check_all({1, {}}, 0, 3, 1);                                 // one node, no edges
  check_all({1, {{0, 0, 0}, {0, 0, 5}}}, 0, 3, 1);             // loops only
  check_all({3, {{1, 2, 4}}}, 0, 3, 1);                        // nothing is reached
  check_all({3, {{0, 1, 0}, {1, 2, 0}, {2, 0, 0}}}, 1, 2, 1);  // a cycle of length 0
  constexpr std::int32_t longest = std::numeric_limits<std::int32_t>::max();
  check_all({4, {{0, 1, longest}, {1, 2, longest}, {2, 3, longest}, {0, 3, longest}}}, 0, 2, 1);
  const heddle::systems::Graph empty;
  for (const heddle::systems::FrontierBalance balance : all_balances) {
    Traversal traversal(Exec{}, empty, {.balance = balance});
    REQUIRE(traversal.distances().extent(0) == 0);
    REQUIRE_THROWS_AS(traversal.breadth_first(0), heddle::contract_error);
  }
}

TEST_CASE("a decomposition differs by one edge, and a worker for each node is far from it",
          "[graph]") {
  const EdgeList list = r_mat(11, 16, 3);
  const heddle::systems::Graph graph = list.unweighted();
  Traversal nodes(Exec{}, graph, {.balance = heddle::systems::FrontierBalance::nodes});
  const heddle::systems::FrontierRun by_nodes = nodes.breadth_first(0);
  Traversal shares(Exec{}, graph, {.workers = 1024});
  const heddle::systems::FrontierRun by_shares = shares.breadth_first(0);
  const auto expected = serial_distances(list, 0, false);
  REQUIRE(host_distances(nodes) == expected);
  REQUIRE(host_distances(shares) == expected);
  REQUIRE(by_nodes.edges() == by_shares.edges());
  for (const heddle::systems::FrontierLoad& load : by_shares.launches)
    REQUIRE(load.most - load.least <= 1);
  REQUIRE(by_nodes.imbalance() >= 5 * by_shares.imbalance());
  REQUIRE(by_nodes.critical_edges() > 5 * by_shares.critical_edges());
}

TEST_CASE("the defaults are the concurrency and the limit of the histogram", "[graph]") {
  const EdgeList list = r_mat(8, 8, 5);
  const heddle::systems::Graph graph = list.graph();
  const Exec exec;
  for (const heddle::systems::FrontierBalance balance : all_balances) {
    Traversal traversal(exec, graph, {.balance = balance});
    const heddle::systems::FrontierRun run = traversal.shortest_paths(1);
    const heddle::systems::FrontierOptions given{balance, heddle::systems::degree_limit(graph),
                                                 exec.concurrency()};
    REQUIRE(run.launches == Reference(list, 1, true).launches(graph, given));
  }
}

TEST_CASE("errors of traversals name the wrong value", "[graph]") {
  using heddle::contract_error;
  const heddle::systems::Graph graph = road_grid(2, 3).graph();
  Traversal traversal(Exec{}, graph);
  REQUIRE_THAT(message_of<contract_error>([&] { traversal.breadth_first(6); }),
               ContainsSubstring("source = 6") && ContainsSubstring("6 nodes"));
  REQUIRE_THAT(message_of<contract_error>([&] { traversal.shortest_paths(-1); }),
               ContainsSubstring("no node -1"));
  traversal.breadth_first(0);  // still usable
  REQUIRE(host_distances(traversal) == std::vector<std::int64_t>{0, 1, 2, 1, 2, 3});
  Traversal plain(Exec{}, road_grid(2, 3).unweighted());
  REQUIRE_THAT(message_of<contract_error>([&] { plain.shortest_paths(0); }),
               ContainsSubstring("no weights") && ContainsSubstring("EdgeWeights::stored"));
  REQUIRE_THAT(message_of<contract_error>([&] {
                 Traversal(
                     Exec{}, graph,
                     {.balance = heddle::systems::FrontierBalance::hierarchy, .max_degree = 0});
               }),
               ContainsSubstring("max_degree = 0"));
  REQUIRE_THAT(message_of<contract_error>([&] { Traversal(Exec{}, graph, {.workers = 0}); }),
               ContainsSubstring("workers = 0"));
  heddle::systems::Graph broken = graph;
  broken.ends[2] = 6;
  REQUIRE_THAT(message_of<contract_error>([&] { Traversal(Exec{}, broken); }),
               ContainsSubstring("edge 2 ends at node 6"));
}

}  // namespace test_graph_traversal
