// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors

/// @file
/// Dynamic load balancing of graph frontiers: five policies of GraphTraversal against serial
/// distances, their edges per worker, and their words.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <iomanip>
#include <numeric>
#include <optional>
#include <sstream>
#include <string>
#include <vector>

#include <Kokkos_Core.hpp>

#include <heddle/core/text.hpp>
#include <heddle/systems/graph_load_balance/frontier_balance.hpp>
#include <heddle/systems/graph_load_balance/graph.hpp>
#include <heddle/systems/graph_load_balance/graph_traversal.hpp>

#include "comparison.hpp"
#include "support/graphs.hpp"

namespace hd = heddle;

namespace report {

namespace {

using GraphSpace = Kokkos::DefaultExecutionSpace;
using GraphWalk = hd::systems::GraphTraversal<GraphSpace>;
using hd::systems::FrontierBalance;

std::string short_number(double value) {
  std::ostringstream out;
  out << std::fixed << std::setprecision(2) << value;
  return out.str();
}

bool has_distances(const GraphWalk& walk, const std::vector<std::int64_t>& expected) {
  const auto view = walk.distances();
  const auto host = Kokkos::create_mirror_view_and_copy(Kokkos::HostSpace{}, view);
  bool equal = host.extent(0) == expected.size();
  for (std::size_t n = 0; equal && n < expected.size(); ++n) equal = host(n) == expected[n];
  return equal;
}

/// Counts the traversals of a graph, of all policies, and those with the serial distances.
void count_equal(const hd::test::EdgeList& list, int& all, int& equal) {
  const hd::systems::Graph graph = list.graph();
  for (const hd::systems::FrontierBalance balance : hd::test::all_balances) {
    GraphWalk walk(GraphSpace{}, graph, {.balance = balance});
    walk.breadth_first(0);
    equal += has_distances(walk, hd::test::serial_distances(list, 0, false));
    walk.shortest_paths(0);
    equal += has_distances(walk, hd::test::serial_distances(list, 0, true));
    all += 2;
  }
}

/// Counts the stored words, of coordinates and of rows, with and without weights, that equal the
/// formulas.
void count_words(const hd::test::EdgeList& list, int& all, int& equal) {
  const auto edges = static_cast<std::int64_t>(list.edges.size());
  for (const bool weighted : {false, true}) {
    const hd::systems::Graph graph = weighted ? list.graph() : list.unweighted();
    const std::int64_t each = weighted ? 2 : 1;
    const GraphWalk rows(GraphSpace{}, graph, {.balance = hd::systems::FrontierBalance::nodes});
    const GraphWalk pairs(GraphSpace{}, graph, {.balance = hd::systems::FrontierBalance::edges});
    equal += rows.words() == list.nodes + 1 + each * edges;
    equal += pairs.words() == (each + 1) * edges;
    all += 2;
  }
}

/// Counts the limits of 1 to 64 edges and of the histogram for which the extra nodes and the
/// sub-iterations of the frontier of all nodes equal the formulas.
void count_limits(const hd::test::EdgeList& list, int& all, int& equal) {
  const hd::systems::Graph graph = list.unweighted();
  std::vector<std::int32_t> nodes(static_cast<std::size_t>(list.nodes));
  std::iota(nodes.begin(), nodes.end(), 0);
  for (const std::int32_t most : {1, 2, 3, 7, 16, 64, hd::systems::degree_limit(graph)}) {
    std::int64_t extra = 0, launches = 0;
    for (const std::int64_t degree : list.degrees()) {
      const std::int64_t pieces = (degree + most - 1) / most;
      extra += std::max<std::int64_t>(pieces, 1) - 1;
      launches = std::max(launches, pieces);
    }
    const auto loads =
        hd::systems::frontier_loads(graph, nodes, {hd::systems::FrontierBalance::hierarchy, most});
    equal += hd::systems::split_nodes(graph, most).extra() == extra &&
             static_cast<std::int64_t>(loads.size()) == launches;
    ++all;
  }
}

}  // namespace

std::vector<Comparison> graph_balance() {
  std::vector<Comparison> lines;
  const hd::test::EdgeList power = hd::test::r_mat(12, 16, 1);
  const hd::test::EdgeList hub = hd::test::star(2000);
  const hd::test::EdgeList roads = hd::test::road_grid(24, 32);
  const auto count = [&](auto&& of, const char* what, const char* bar) {
    int all = 0, equal = 0;
    for (const auto* list : {&power, &hub, &roads}) of(*list, all, equal);
    lines.push_back(
        {what, "", hd::text(equal, " of ", all), bar, verdict(all > 0 && equal == all)});
  };
  count(count_equal,
        "distances of breadth-first search and shortest paths, 5 policies, on an R-MAT graph of "
        "4096 nodes and 65,536 edges, a star of 2000 nodes and a grid of 24 x 32 crossings",
        "all equal a serial program's");

  const hd::systems::Graph graph = power.unweighted();
  std::vector<std::int32_t> nodes(static_cast<std::size_t>(power.nodes));
  std::iota(nodes.begin(), nodes.end(), 0);
  const auto loaded = [&](hd::systems::FrontierBalance balance) {
    return hd::systems::summed_load(
        hd::systems::frontier_loads(graph, nodes, {balance, {}, power.nodes}).front());
  };
  const hd::systems::FrontierLoad by_nodes = loaded(hd::systems::FrontierBalance::nodes);
  const hd::systems::FrontierLoad by_shares = loaded(hd::systems::FrontierBalance::decomposition);
  const hd::systems::FrontierLoad by_parts = loaded(hd::systems::FrontierBalance::splitting);
  const auto degrees = power.degrees();
  const std::int64_t largest = *std::max_element(degrees.begin(), degrees.end());
  lines.push_back(
      {"largest number of edges of a worker over the mean, all nodes of the R-MAT graph active, "
       "4096 workers: a worker for each node, and workload decomposition",
       "",
       hd::text(short_number(by_nodes.imbalance()), " and ", short_number(by_shares.imbalance()),
                "; split nodes, limit ", hd::systems::degree_limit(graph), ": ",
                short_number(by_parts.imbalance()), " with ", by_parts.workers, " workers"),
       "the first is at least 5 times the second",
       verdict(by_nodes.most == largest && by_nodes.imbalance() >= 5 * by_shares.imbalance())});

  std::string critical;
  std::int64_t difference = 0, followed = 0, by_node = 0, by_share = 0;
  bool same = true;
  for (const hd::systems::FrontierBalance balance : hd::test::all_balances) {
    GraphWalk walk(GraphSpace{}, graph, {balance, {}, 4096});
    const hd::systems::FrontierRun run = walk.breadth_first(0);
    critical += hd::text(critical.empty() ? "" : ", ", run.critical_edges(), " (",
                         short_number(run.imbalance()), ")");
    same = same && (followed == 0 || followed == run.edges());
    followed = run.edges();
    if (balance == hd::systems::FrontierBalance::nodes) by_node = run.critical_edges();
    if (balance != hd::systems::FrontierBalance::decomposition) continue;
    by_share = run.critical_edges();
    for (const hd::systems::FrontierLoad& load : run.launches)
      difference = std::max(difference, load.most - load.least);
  }
  lines.push_back(
      {"edges of two workers of a decomposition differ by at most, executed "
       "breadth-first search on the R-MAT graph, 4096 workers",
       "", hd::text(difference), "1", verdict(difference <= 1)});
  lines.push_back(
      {hd::text("edges on the critical path of the same search, ", followed,
                " edges in all, and largest over mean edges of a worker, weighted by the launches' "
                "edges: node-based, edge-based, decomposition, splitting, hierarchical"),
       "", critical, "a worker for each node has at least 5 times as many as a decomposition",
       verdict(same && by_node >= 5 * by_share)});
  count(count_words,
        "words of coordinates (2 or 3 for each edge) and of compressed sparse rows (1 or 2 for "
        "each edge, and nodes + 1), stored by traversals of the three graphs",
        "all equal the formulas");
  count(count_limits,
        "extra nodes of splitting and sub-iterations of hierarchical processing, limits of 1 to 64 "
        "edges and by the histogram, on the three graphs",
        "all equal sum(ceil(degree / limit) - 1) and ceil(largest degree / limit)");
  lines.push_back({"time on a GPU", "", "", "none",
                   "not reproducible: it needs the authors' GPU, graphs and implementation"});
  return lines;
}

}  // namespace report
