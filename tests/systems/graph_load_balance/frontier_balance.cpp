// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors

// Graphs, split nodes and the division of frontiers among workers: words, parts and sub-iterations
// by their formulas, shares against an enumeration of all edges, and errors.

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <numeric>
#include <span>
#include <utility>
#include <vector>

#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>

#include <heddle/core/error.hpp>
#include <heddle/systems/graph_load_balance/frontier_balance.hpp>
#include <heddle/systems/graph_load_balance/graph.hpp>

#include "support/cases.hpp"
#include "support/complaint.hpp"
#include "support/graphs.hpp"

namespace test_frontier_balance {

using namespace heddle;
using namespace heddle::test;
using Catch::Matchers::ContainsSubstring;
using Loads = std::vector<std::vector<std::int64_t>>;

namespace {

std::vector<std::int32_t> all_nodes(const EdgeList& list) {
  std::vector<std::int32_t> nodes(static_cast<std::size_t>(list.nodes));
  std::iota(nodes.begin(), nodes.end(), 0);
  return nodes;
}

std::int64_t rounded_up(std::int64_t a, std::int64_t b) { return a / b + (a % b > 0 ? 1 : 0); }

std::int64_t largest_degree(const EdgeList& list) {
  std::int64_t most = 0;
  for (const std::int64_t degree : list.degrees()) most = std::max(most, degree);
  return most;
}

/// The edges of each worker, by dealing out the active edges one by one.
std::vector<std::int64_t> dealt(std::int64_t edges, std::int64_t workers) {
  std::vector<std::int64_t> load(static_cast<std::size_t>(std::min(edges, workers)), 0);
  for (std::int64_t e = 0; e < edges; ++e) ++load[static_cast<std::size_t>(e) % load.size()];
  return load;
}

void check_graph(const EdgeList& list, std::int32_t most, std::int64_t workers) {
  const auto degree = list.degrees();
  const systems::Graph graph = list.graph();
  check(graph);
  REQUIRE(graph.nodes() == list.nodes);
  REQUIRE(graph.max_degree() == largest_degree(list));

  // Every edge, in its place.
  std::vector<std::int32_t> next(graph.offsets.begin(), graph.offsets.end() - 1);
  for (const systems::GraphEdge& edge : list.edges) {
    const auto at = static_cast<std::size_t>(next[static_cast<std::size_t>(edge.from)]++);
    REQUIRE(graph.ends[at] == edge.to);
    REQUIRE(graph.weights[at] == edge.weight);
  }
  for (std::size_t n = 0; n < next.size(); ++n) REQUIRE(next[n] == graph.offsets[n + 1]);

  // Words.
  const auto edges = static_cast<std::int64_t>(list.edges.size());
  REQUIRE(systems::csr_words(graph) == list.nodes + 1 + 2 * edges);
  REQUIRE(systems::coo_words(graph) == 3 * edges);
  REQUIRE(systems::csr_words(list.unweighted()) == list.nodes + 1 + edges);
  REQUIRE(systems::coo_words(list.unweighted()) == 2 * edges);

  // Parts: sum of ceil(degree / most) - 1 more than nodes, each with 1 to `most` edges.
  std::int64_t extra = 0;
  for (const std::int64_t d : degree) extra += d > 0 ? rounded_up(d, most) - 1 : 0;
  const systems::NodeParts split = systems::split_nodes(graph, most);
  REQUIRE(split.extra() == extra);
  REQUIRE(split.parts() == list.nodes + extra);
  REQUIRE(systems::graph_words(graph, {systems::FrontierBalance::splitting, most}) ==
          static_cast<std::int64_t>(split.first.size() + split.offsets.size() + graph.ends.size() +
                                    graph.weights.size()));
  for (std::size_t n = 0; n < degree.size(); ++n) {
    REQUIRE(split.offsets[static_cast<std::size_t>(split.first[n])] == graph.offsets[n]);
    REQUIRE(split.first[n + 1] - split.first[n] ==
            std::max<std::int64_t>(1, rounded_up(degree[n], most)));
    for (auto p = static_cast<std::size_t>(split.first[n]);
         p < static_cast<std::size_t>(split.first[n + 1]); ++p) {
      const std::int64_t own = split.offsets[p + 1] - split.offsets[p];
      REQUIRE(own <= most);
      REQUIRE(own >= (degree[n] > 0 ? 1 : 0));
    }
  }
  REQUIRE(split.offsets.back() == edges);

  // The frontier of all nodes, and its reverse half.
  std::vector<std::int32_t> frontier = all_nodes(list);
  for (int half = 0; half < 2; ++half) {
    std::int64_t active = 0, largest = 0;
    for (const std::int32_t node : frontier) {
      active += degree[static_cast<std::size_t>(node)];
      largest = std::max(largest, degree[static_cast<std::size_t>(node)]);
    }
    for (const systems::FrontierBalance balance : all_balances) {
      std::int64_t sum = 0;
      const Loads loads = systems::frontier_loads(graph, frontier, {balance, most, workers});
      for (const auto& load : loads) sum += std::accumulate(load.begin(), load.end(), 0L);
      REQUIRE(sum == active);
      if (balance == systems::FrontierBalance::hierarchy) {
        REQUIRE(static_cast<std::int64_t>(loads.size()) == rounded_up(largest, most));
        for (const auto& load : loads) REQUIRE(systems::summed_load(load).most <= most);
      }
      if (balance == systems::FrontierBalance::decomposition && active > 0)
        REQUIRE(loads == Loads{dealt(active, workers)});
      if (balance == systems::FrontierBalance::edges && edges > 0) {
        REQUIRE(static_cast<std::int64_t>(loads.at(0).size()) == edges);
        REQUIRE(systems::summed_load(loads.at(0)).most <= 1);
      }
    }
    std::reverse(frontier.begin(), frontier.end());
    frontier.resize((frontier.size() + 1) / 2);
  }
}

}  // namespace

TEST_CASE("words, parts and sub-iterations equal their formulas", "[graph]") {
  check_graph(r_mat(10, 16, 7), 16, 100);
  check_graph(star(500), 8, 16);
  check_graph(road_grid(12, 17), 3, 5);
  check_graph({0, {}}, 1, 1);
  check_graph({1, {}}, 1, 4);
  check_graph({1, {{0, 0, 0}, {0, 0, 1}, {0, 0, 0}}}, 2, 2);
  for (std::uint64_t seed = 0; seed < cases(200, 100'000); ++seed)
    check_graph(random_graph(seed, 30), 1 + static_cast<std::int32_t>(seed % 7),
                1 + static_cast<std::int64_t>(seed % 40));
}

TEST_CASE("a share begins where an enumeration of the edges finds it", "[graph]") {
  for (std::uint64_t seed = 0; seed < cases(300, 100'000); ++seed) {
    const heddle::Random random(seed, "sums");
    std::vector<std::int64_t> sums{0};
    std::vector<std::pair<std::size_t, std::int64_t>> edges;  // position, offset
    const std::uint64_t nodes = random.below(0, 12);
    for (std::uint64_t n = 0; n < nodes; ++n) {
      const auto degree = static_cast<std::int64_t>(random.below(n + 1, 5));  // also 0
      for (std::int64_t e = 0; e < degree; ++e) edges.emplace_back(n, e);
      sums.push_back(sums.back() + degree);
    }
    const auto workers = static_cast<std::int64_t>(1 + random.below(20, 9));
    std::size_t at = 0;
    for (std::int64_t w = 0; w < workers; ++w) {
      const systems::EdgeShare share = systems::decomposed_share(sums, w, workers);
      if (share.count > 0)
        REQUIRE(std::pair(share.position, share.offset) == edges.at(at));
      else
        REQUIRE(share == systems::EdgeShare{});
      at += static_cast<std::size_t>(share.count);
    }
    REQUIRE(at == edges.size());
  }
}

TEST_CASE("a worker for each node is far less balanced than equal shares", "[graph]") {
  const EdgeList list = r_mat(12, 16, 1);
  const systems::Graph graph = list.graph();
  const auto frontier = all_nodes(list);
  const systems::FrontierLoad nodes = systems::summed_load(
      systems::frontier_loads(graph, frontier, {systems::FrontierBalance::nodes}).at(0));
  const systems::FrontierLoad shares = systems::summed_load(
      systems::frontier_loads(graph, frontier,
                              {systems::FrontierBalance::decomposition, {}, list.nodes})
          .at(0));
  REQUIRE(shares.most - shares.least <= 1);
  REQUIRE(nodes.workers == shares.workers);
  REQUIRE(nodes.imbalance() >= 5 * shares.imbalance());
}

TEST_CASE("the histogram of degrees gives the limit", "[graph]") {
  // 10 bins up to degree 100: nine nodes of degree 11 to 20, eight of 1 to 10, one of 100.
  EdgeList list{18, {}};
  const auto give = [&](std::int32_t node, std::int32_t degree) {
    for (std::int32_t e = 0; e < degree; ++e) list.edges.push_back({node, 0, 1});
  };
  for (std::int32_t n = 0; n < 9; ++n) give(n, 11 + n);
  for (std::int32_t n = 9; n < 17; ++n) give(n, n - 8);
  give(17, 100);
  const systems::Graph graph = list.graph();
  REQUIRE(systems::degree_limit(graph) == 20);
  REQUIRE(systems::degree_limit(graph, 1) == 100);
  REQUIRE(systems::degree_limit(graph, 5) == 20);
  REQUIRE(systems::split_nodes(graph, systems::degree_limit(graph)).extra() == 4);
  REQUIRE(systems::degree_limit(star(30).graph()) ==
          3);  // 29 nodes of degree 1, one of 29: ceil(2.9)
  REQUIRE(systems::degree_limit(road_grid(1, 2).graph()) == 1);
  REQUIRE(systems::degree_limit(systems::Graph{}) == 1);
}

TEST_CASE("the summary of a run", "[graph]") {
  const systems::FrontierRun run{2, {{2, 6, 2, 4}, {1, 4, 4, 4}}};
  REQUIRE(run.edges() == 10);
  REQUIRE(run.critical_edges() == 8);
  REQUIRE(run.imbalance() == 1.2);  // (2 * 4 + 1 * 4) / 10
  REQUIRE(systems::FrontierRun{}.imbalance() == 1);
  REQUIRE(systems::FrontierLoad{}.imbalance() == 1);
  const std::vector<std::int64_t> loads{3, 0, 6};
  REQUIRE(systems::summed_load(loads) == systems::FrontierLoad{3, 9, 0, 6});
  REQUIRE(systems::summed_load(loads).imbalance() == 2);
  REQUIRE(systems::summed_load({}) == systems::FrontierLoad{});
}

TEST_CASE("wrong graphs and options are rejected by name", "[graph]") {
  const auto message = [](auto call) { return message_of<contract_error>(call); };
  using Edges = std::vector<systems::GraphEdge>;
  const auto made = [&](std::int32_t nodes, const Edges& edges, systems::EdgeWeights weights) {
    return message([&] { (void)systems::make_graph(nodes, edges, weights); });
  };
  const auto stored = systems::EdgeWeights::stored;
  REQUIRE_THAT(made(2, {{0, 1}, {1, 2}}, stored), ContainsSubstring("edge 1 ends at node 2"));
  REQUIRE_THAT(made(2, {{-1, 1}}, stored), ContainsSubstring("edge 0 begins at node -1"));
  REQUIRE_THAT(made(2, {{0, 1, -3}}, stored), ContainsSubstring("edge 0 has the weight -3"));
  REQUIRE_THAT(made(-1, {}, stored), ContainsSubstring("nodes = -1"));
  REQUIRE_THAT(made(0, {{0, 0}}, stored), ContainsSubstring("0 nodes"));
  REQUIRE_NOTHROW(systems::make_graph(2, Edges{{0, 1, -3}}));  // weights are left out

  const systems::Graph good = road_grid(2, 2).graph();
  const auto broken = [&](auto change) {
    systems::Graph graph = good;
    change(graph);
    return message([&] { check(graph); });
  };
  REQUIRE_THAT(broken([](systems::Graph& g) { g.offsets.clear(); }),
               ContainsSubstring("0 offsets"));
  REQUIRE_THAT(broken([](systems::Graph& g) { g.offsets.back() = 7; }),
               ContainsSubstring("8 edges"));
  REQUIRE_THAT(broken([](systems::Graph& g) { g.offsets[1] = 5; }),
               ContainsSubstring("descend behind node 1"));
  REQUIRE_THAT(broken([](systems::Graph& g) { g.ends[3] = 4; }),
               ContainsSubstring("edge 3 ends at node 4"));
  REQUIRE_THAT(broken([](systems::Graph& g) { g.weights.pop_back(); }),
               ContainsSubstring("7 weights"));
  REQUIRE_THAT(broken([](systems::Graph& g) { g.weights[5] = -1; }),
               ContainsSubstring("edge 5 has the weight -1"));

  REQUIRE_THAT(message([&] { (void)systems::split_nodes(good, 0); }),
               ContainsSubstring("max_degree = 0"));
  REQUIRE_THAT(message([&] { (void)systems::degree_limit(good, 0); }),
               ContainsSubstring("bins = 0"));
  const auto loads = [&](std::vector<std::int32_t> frontier,
                         const systems::FrontierOptions& options) {
    return message([&] { (void)systems::frontier_loads(good, frontier, options); });
  };
  REQUIRE_THAT(loads({4}, {systems::FrontierBalance::nodes}), ContainsSubstring("node 4"));
  REQUIRE_THAT(loads({0}, {systems::FrontierBalance::splitting, 0}),
               ContainsSubstring("max_degree = 0"));
  REQUIRE_THAT(loads({0}, {systems::FrontierBalance::decomposition, {}, 0}),
               ContainsSubstring("workers = 0"));
  REQUIRE_THAT(loads({0}, {systems::FrontierBalance::decomposition}),
               ContainsSubstring("workers is empty"));
  REQUIRE_THAT(message([] { (void)systems::decomposed_share({}, 0, 1); }),
               ContainsSubstring("sums"));
  REQUIRE_THAT(message([] {
                 const std::vector<std::int64_t> sums{0, 4};
                 (void)systems::decomposed_share(sums, 2, 2);
               }),
               ContainsSubstring("worker = 2, workers = 2"));
}

}  // namespace test_frontier_balance
