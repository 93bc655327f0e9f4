// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
// kokkos: yes

// One step with a visitor of the user's own: every policy follows each edge of the frontier once,
// with the value that its node had at the beginning.

#include <cstddef>
#include <cstdint>
#include <vector>

#include <Kokkos_Core.hpp>
#include <catch2/catch_test_macros.hpp>

#include <heddle/core/random.hpp>
#include <heddle/device/mirror.hpp>
#include <heddle/systems/graph_load_balance/frontier_balance.hpp>
#include <heddle/systems/graph_load_balance/frontier_expansion.hpp>
#include <heddle/systems/graph_load_balance/graph.hpp>

#include "space.hpp"
#include "support/cases.hpp"
#include "support/graphs.hpp"

namespace test_frontier_expansion {

using namespace heddle::test;
using Exec = examples::Space;
using Expansion = heddle::systems::FrontierExpansion<Exec>;

/// Adds the value of the node where an edge begins to the node where it ends. An edge may end at an
/// active node, so values change during the step.
struct AddValues {
  Expansion::Numbers ends;
  Kokkos::View<std::int64_t*, Exec::memory_space> sums;
  KOKKOS_FUNCTION std::int64_t value(std::int32_t node) const { return sums(node); }
  KOKKOS_FUNCTION void follow(std::int64_t edge, std::int64_t value) const {
    Kokkos::atomic_add(&sums(ends(edge)), value);
  }
};

TEST_CASE("every policy follows each edge once, with the value before the step", "[graph]") {
  std::uint64_t between_active = 0;
  for (std::uint64_t seed = 0; seed < cases(10, 5'000); ++seed) {
    const EdgeList list = random_graph(seed, 40);
    const heddle::systems::Graph graph = list.graph();
    const heddle::Random random(seed, "active");
    std::vector<std::int32_t> active;
    for (std::int32_t node = 0; node < list.nodes; ++node)
      if (random.below(static_cast<std::uint64_t>(node), 2) == 0) active.push_back(node);
    std::vector<std::int64_t> expected;
    for (std::int32_t node = 0; node < list.nodes; ++node) expected.push_back(node + 1);
    std::int64_t edges = 0;
    const auto is_active = [&](std::int32_t node) {
      return random.below(static_cast<std::uint64_t>(node), 2) == 0;
    };
    for (const heddle::systems::GraphEdge& edge : list.edges) {
      if (!is_active(edge.from)) continue;
      expected[static_cast<std::size_t>(edge.to)] += edge.from + 1;
      between_active += is_active(edge.to) ? 1u : 0u;
      ++edges;
    }
    for (const heddle::systems::FrontierBalance balance : all_balances) {
      Expansion expansion(Exec{}, graph, {balance, 3, 7});
      REQUIRE(expansion.nodes() == list.nodes);
      REQUIRE(expansion.edges() == static_cast<std::int64_t>(list.edges.size()));
      const Expansion::Numbers frontier("frontier", active.size());
      const Kokkos::View<std::int64_t*, Exec::memory_space> sums("sums", expected.size());
      const auto nodes = heddle::host_mirror(frontier);
      const auto values = heddle::host_mirror(sums);
      for (std::size_t i = 0; i < active.size(); ++i) nodes(i) = active[i];
      for (std::size_t n = 0; n < expected.size(); ++n)
        values(n) = static_cast<std::int64_t>(n) + 1;
      Kokkos::deep_copy(frontier, nodes);
      Kokkos::deep_copy(sums, values);
      heddle::systems::FrontierRun run;
      expansion.expand(frontier, static_cast<std::int64_t>(active.size()),
                       AddValues{expansion.ends(), sums}, run);
      Kokkos::deep_copy(values, sums);
      REQUIRE(std::vector<std::int64_t>(values.data(), values.data() + values.extent(0)) ==
              expected);
      REQUIRE(run.edges() == edges);

      // A second step of the same object, of the other nodes: the marks of the first are old.
      std::vector<std::int64_t> after = expected;
      for (const heddle::systems::GraphEdge& edge : list.edges)
        if (!is_active(edge.from))
          after[static_cast<std::size_t>(edge.to)] += expected[static_cast<std::size_t>(edge.from)];
      std::vector<std::int32_t> others;
      for (std::int32_t node = 0; node < list.nodes; ++node)
        if (!is_active(node)) others.push_back(node);
      const Expansion::Numbers rest("rest", others.size());
      const auto rest_nodes = heddle::host_mirror(rest);
      for (std::size_t i = 0; i < others.size(); ++i) rest_nodes(i) = others[i];
      Kokkos::deep_copy(rest, rest_nodes);
      expansion.expand(rest, static_cast<std::int64_t>(others.size()),
                       AddValues{expansion.ends(), sums}, run);
      Kokkos::deep_copy(values, sums);
      REQUIRE(std::vector<std::int64_t>(values.data(), values.data() + values.extent(0)) == after);
    }
  }
  REQUIRE(between_active > 0);
}

}  // namespace test_frontier_expansion
