// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
// space: its own

// Options and shapes of kernel/ that programs fill by hand: every door rejects a broken entry and
// names it.

#include <cstddef>
#include <cstdint>
#include <functional>
#include <limits>
#include <string>
#include <vector>

#include <Kokkos_Core.hpp>
#include <catch2/catch_test_macros.hpp>

#include <heddle/kernel.hpp>
#include <heddle/systems/graph_load_balance/frontier_balance.hpp>
#include <heddle/systems/graph_load_balance/graph.hpp>
#include <heddle/systems/graph_load_balance/graph_traversal.hpp>

#include "support/broken_entries.hpp"

namespace test_kernel_broken_entries {

using namespace heddle;
using namespace heddle::kernel;
using test::BrokenEntry;
using test::check_broken;

namespace {

using Exec = Kokkos::DefaultHostExecutionSpace;
using Grid = Kokkos::View<double**, Kokkos::LayoutRight, Kokkos::HostSpace>;
using Line = Kokkos::View<double*, Kokkos::LayoutRight, Kokkos::HostSpace>;

constexpr double nan = std::numeric_limits<double>::quiet_NaN();
constexpr double infinity = std::numeric_limits<double>::infinity();
constexpr std::size_t most = std::numeric_limits<std::size_t>::max();
constexpr std::size_t half = most / 2 + 1;  // twice it is 0

struct Centre {
  template <class Neighbourhood>
  KOKKOS_FUNCTION double operator()(const Neighbourhood& u) const {
    return u(-1, 0) + u(1, 0);
  }
};

}  // namespace

TEST_CASE("Adam rejects numbers with which no parameter stays finite") {
  const Line three("three", 3);
  const auto update = [&](AdamOptions options) {
    return [=] { adam_update(Exec{}, options, 1, three, three, three, three); };
  };
  std::vector<BrokenEntry> table{
      {"beta1 of 1", update({.beta1 = 1}), {"beta1 = 1"}},
      {"beta2 of 1", update({.beta2 = 1}), {"beta2 = 1"}},
      {"beta2 above 1", update({.beta2 = 1.5}), {"beta2 = 1.5"}},
  };
  for (const double number : {nan, -1.0, infinity}) {
    table.push_back({"learning_rate", update({.learning_rate = number}), {"learning_rate = "}});
    table.push_back({"beta1", update({.beta1 = number}), {"beta1 = "}});
    table.push_back({"beta2", update({.beta2 = number}), {"beta2 = "}});
    table.push_back({"epsilon", update({.epsilon = number}), {"epsilon = "}});
    table.push_back({"weight_decay", update({.weight_decay = number}), {"weight_decay = "}});
  }
  check_broken(table);
  update({.learning_rate = 0, .beta1 = 0, .beta2 = 0, .epsilon = 1e-8, .weight_decay = 0})();
}

TEST_CASE("shapes of attention reject heads and positions that are none") {
  // Twice `half` is 0, so that half + 1 sequences of two positions seem to have two rows.
  const Grid qkv("qkv", 2, 3), square("square", 2, 2), column("column", 2, 1);
  const auto forward = [=](AttentionShape shape) {
    return [=] { attention_forward(Exec{}, shape, qkv, square, column); };
  };
  const auto backward = [=](AttentionShape shape) {
    return [=] { attention_backward_input(Exec{}, shape, qkv, square, column, square, qkv); };
  };
  const auto heads = [](AttentionHeads each) {
    return [=] { kernel::impl::expect_attention_heads("heddle::test", each); };
  };
  check_broken({
      {"heads", forward({1, 2, 0, 1}), {"heads 0"}},
      {"width", forward({1, 2, 2, 3}), {"width 3", "heads 2"}},
      {"sequences", forward({half + 1, 2, 1, 1}), {"sequences 9223372036854775809"}},
      {"sequences backward", backward({half + 1, 2, 1, 1}), {"sequences 9223372036854775809"}},
      {"of all", heads({0, 1, 4}), {"heads 0"}},
      {"of K,V", heads({4, 0, 4}), {"kv_heads 0"}},
      {"no divisor", heads({4, 3, 4}), {"kv_heads 3"}},
      {"no width", heads({4, 2, 0}), {"head_width 0"}},
      {"too many", heads({half, half, 2}), {"heads 9223372036854775808"}},
  });
}

TEST_CASE("masks, stencils and graphs reject what does not exist") {
  const Grid now("now", 4, 4), next("next", 4, 4);
  const auto smooth = [=](StencilOptions<double, 2> options) {
    return [=] { stencil(Exec{}, 1, Centre{}, next, now, options); };
  };
  systems::Graph graph;
  graph.offsets = {0, 1, 2};
  graph.ends = {1, 0};
  const auto traverse = [=](systems::FrontierOptions options) {
    return [=] { systems::GraphTraversal<Exec>(Exec{}, graph, options); };
  };
  const auto change = [=](const std::function<void(systems::Graph&)>& apply) {
    systems::Graph other = graph;
    apply(other);
    return [=] { systems::GraphTraversal<Exec>(Exec{}, other); };
  };
  IndexSet all;
  all.add({0, 4});
  const auto visible = [=](AttentionMask mask) {
    return [=] { VisibleKeys<Exec>(all, all, mask); };
  };
  check_broken({
      {"boundary", smooth({.boundary = static_cast<Boundary>(9)}), {"boundary = 9"}},
      {"tile", smooth({.tile = {2, 0}}), {"0 points"}},
      {"balance", traverse({.balance = static_cast<systems::FrontierBalance>(9)}), {"balance"}},
      {"end", change([](systems::Graph& g) { g.ends[1] = 2; }), {"2"}},
      {"offset", change([](systems::Graph& g) { g.offsets[1] = 5; }), {"5"}},
      {"weights", change([](systems::Graph& g) { g.weights = {1}; }), {"1 weights"}},
      {"weight",
       change([](systems::Graph& g) {
         g.weights = {1, -1};
       }),
       {"-1"}},
      {"segments", visible({.causal = true, .segments = {2, 1}}), {"position 1"}},
      {"segment", visible({.causal = true, .segments = {-1}}), {"position -1"}},
  });
  smooth({.tile = {most, most}})();  // cut to the grid
}

}  // namespace test_kernel_broken_entries
