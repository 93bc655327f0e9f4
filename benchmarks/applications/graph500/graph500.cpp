// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors

/// @file
/// Breadth-first search of example 42 on one rank and one thread against SuiteSparse:GraphBLAS and
/// the reference code of the GAP benchmark suite, on the graphs of scale 16 and 18, by processor
/// time.

#include <cstddef>
#include <cstdint>
#include <iostream>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <Kokkos_Core.hpp>
#include <mpi.h>

#include <heddle/comm/communicator.hpp>
#include <heddle/comm/environment.hpp>
#include <heddle/core/random.hpp>
#include <heddle/core/text.hpp>
#include <heddle/systems/graph_load_balance/graph.hpp>

#include "../../../examples/42_graph500/edges.hpp"
#include "../../../examples/42_graph500/rank_graph.hpp"
#include "../../../examples/42_graph500/search.hpp"
#include "../../support.hpp"
#include "peers.hpp"

namespace {

constexpr const char* name = "applications/graph500";
constexpr std::size_t roots = 31;

/// What all searches from a root must agree on.
struct Reached {
  std::int64_t vertices = 0, levels = 0, edges = 0;
  friend bool operator==(const Reached&, const Reached&) = default;
  friend std::ostream& operator<<(std::ostream& out, const Reached& reached) {
    return out << reached.vertices << " vertices whose levels sum to " << reached.levels;
  }
};

/// Follows the parents of each vertex up to the root.
Reached reached(const heddle::systems::Graph& graph, std::int32_t root,
                const std::vector<std::int32_t>& parents) {
  std::vector<std::int64_t> level(parents.size(), -1);
  level[static_cast<std::size_t>(root)] = 0;
  Reached sum;
  std::vector<std::size_t> path;
  for (std::size_t v = 0; v < parents.size(); ++v) {
    if (parents[v] < 0) continue;
    std::size_t at = v;
    for (path.clear(); level[at] < 0; at = static_cast<std::size_t>(parents[at]))
      path.push_back(at);
    for (std::int64_t next = level[at]; !path.empty(); path.pop_back()) level[path.back()] = ++next;
    ++sum.vertices;
    sum.levels += level[v];
    sum.edges += graph.degree(static_cast<std::int32_t>(v));
  }
  return sum;
}

searches::Search ours(graph500::Search& search, graph500::Direction direction) {
  return [&search, direction](std::int32_t root, const auto& timed) {
    timed([&] { search.breadth_first(root, direction); });
    std::vector<std::int32_t> parents;
    for (const std::int64_t value : search.gathered())
      parents.push_back(value == graph500::unknown ? -1 : static_cast<std::int32_t>(value));
    return parents;
  };
}

struct Competitor {
  std::string name;
  searches::Search search;
  std::vector<double> times = {};
};

/// Times all competitors from each root. The first one is ours.
void compare(const heddle::systems::Graph& graph, const std::string& form,
             std::vector<Competitor> all) {
  const heddle::Random random(1, "roots of a benchmark");
  std::vector<double> rates;
  for (std::uint64_t draw = 0; rates.size() < roots; ++draw) {
    const auto root =
        static_cast<std::int32_t>(random.below(draw, static_cast<std::uint64_t>(graph.nodes())));
    if (graph.degree(root) == 0) continue;
    std::optional<Reached> reference;
    for (std::size_t turn = 0; turn < all.size(); ++turn) {
      Competitor& one = all[(turn + rates.size()) % all.size()];
      const std::vector<std::int32_t> parents = one.search(
          root, [&](const auto& work) { one.times.push_back(bench::processor_seconds_of(work)); });
      const Reached now = reached(graph, root, parents);
      if (!reference) reference = now;
      bench::require_equal("the tree of " + one.name, now, *reference);
    }
    rates.push_back(1e-6 * static_cast<double>(reference->edges) / 2 / all.front().times.back());
  }
  bench::print_value(name, "edges_" + form, bench::summarise(rates), "M/s");
  for (std::size_t i = 1; i < all.size(); ++i)
    bench::print_ratio(name, all[i].name + "_" + form,
                       bench::ratios(all[i].times, all.front().times));
}

void measure(int scale, const heddle::Communicator& comm) {
  const graph500::EdgeList list = graph500::r_mat(scale, 16, 1, 1, 0);
  const graph500::Blocks blocks{list.vertices, 1};
  const heddle::systems::Graph graph = graph500::rank_graph(list, blocks, comm);
  graph500::Search search(graph, blocks, comm, {});
  std::vector<Competitor> top_down{{"heddle", ours(search, graph500::Direction::top_down)}};
  std::vector<Competitor> both{{"heddle", ours(search, graph500::Direction::both)}};
  const auto add = [&](const char* peer, const std::optional<searches::Peer>& found) {
    if (!found) {
      std::cout << "skip " << name << " a library to compare with was not found: " << peer << '\n';
      return;
    }
    if (found->top_down) top_down.push_back({peer, found->top_down});
    both.push_back({peer, found->both});
  };
  add("graphblas", searches::graphblas(graph));
  add("gapbs", searches::gapbs(graph));
  compare(graph, heddle::text("top_down_", scale), std::move(top_down));
  compare(graph, heddle::text("both_", scale), std::move(both));
}

}  // namespace

int main(int argc, char** argv) {
  heddle::Environment env(argc, argv);
  return bench::status_of(name, [] {
    const heddle::Communicator world(MPI_COMM_WORLD);
    for (const int scale : {16, 18}) measure(scale, world);
  });
}
