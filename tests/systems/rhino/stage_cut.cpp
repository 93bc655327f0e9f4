// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors

// cut_stages() against every linear order of random graphs, cut in every balanced way: no order has
// fewer bytes, and two branches have fewer than the orders that interleave them.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <random>
#include <vector>

#include <catch2/catch_approx.hpp>
#include <catch2/catch_test_macros.hpp>

#include <heddle/core/error.hpp>
#include <heddle/systems/rhino/stage_cut.hpp>

#include "support/cases.hpp"
#include "support/linear_orders.hpp"

namespace test_stage_cut {

using namespace heddle;
using systems::OperationGraph;
using systems::StageCut;
using test::AllOrders;

void add_edge(OperationGraph& graph, std::size_t from, std::size_t to, double bytes) {
  graph.orders.push_back({from, to});
  graph.data.push_back({{from, to}, bytes});
}

bool is_balanced(const OperationGraph& graph, const StageCut& cut, int stages, double tolerance) {
  std::vector<double> work(static_cast<std::size_t>(stages));
  double total = 0;
  for (std::size_t v = 0; v < graph.work.size(); ++v) {
    work[static_cast<std::size_t>(cut.stages[v])] += graph.work[v];
    total += graph.work[v];
  }
  return std::ranges::max(work) <= (1 + tolerance) * total / stages * (1 + 1e-9);
}

TEST_CASE("no linear order of two branches has a cut with fewer bytes") {
  // A root, two branches of three, and a sink. The branches send 10 inside; in the order in which
  // they are interleaved, every middle cut has two of these messages.
  OperationGraph graph{.work = std::vector<double>(8, 1)};
  for (const std::size_t first : {std::size_t{1}, std::size_t{4}}) {
    add_edge(graph, 0, first, 1);
    add_edge(graph, first, first + 1, 10);
    add_edge(graph, first + 1, first + 2, 10);
    add_edge(graph, first + 2, 7, 1);
  }
  const StageCut cut = cut_stages(graph, 2);
  const AllOrders orders(graph, 2, 0.1);
  REQUIRE(cut.optimal);
  CHECK(orders.cuts == 20);  // 6! / (3! 3!) orders, each cut in its middle
  CHECK(cut.bytes == orders.least);
  CHECK(cut.bytes == 2);  // 0 and one branch, then the other: 0 -> 4 and 3 -> 7 cross
  CHECK(cut.bytes == graph.bytes(cut.stages));
  CHECK(is_balanced(graph, cut, 2, 0.1));
  // The given order, interleaved: 0 1 4 | 2 5 3 6 7 has two messages of 10 at every balanced cut.
  const std::vector<int> interleaved = {0, 0, 0, 1, 0, 1, 1, 1};
  CHECK(graph.bytes(interleaved) >= 10);
}

TEST_CASE("no linear order of a random graph has a cut with fewer bytes") {
  std::mt19937_64 random(29);
  std::size_t cut_some = 0, impossible = 0;
  const std::uint64_t count = test::cases(40, 2'000);
  for (std::uint64_t i = 0; i < count; ++i) {
    const std::size_t n = 3 + i % 5;
    const int stages = 2 + static_cast<int>(i % 2);
    OperationGraph graph;
    for (std::size_t v = 0; v < n; ++v) graph.work.push_back(static_cast<double>(1 + random() % 3));
    for (std::size_t v = 1; v < n; ++v) {
      systems::OperationGraph::Data data{{v}, static_cast<double>(1 + random() % 9)};
      for (std::size_t u = 0; u < v; ++u)
        if (random() % 3 == 0) {
          add_edge(graph, u, v, static_cast<double>(1 + random() % 9));
          data.vertices.push_back(u);
        }
      if (data.vertices.size() > 2) graph.data.push_back(data);  // also among three or more
    }
    const double tolerance = 0.1 + 0.1 * static_cast<double>(i % 4);
    const StageCut cut = cut_stages(graph, stages, {.tolerance = tolerance, .programs = 100'000});
    const AllOrders orders(graph, stages, tolerance);
    REQUIRE(cut.optimal);
    REQUIRE(cut.stages.empty() == (orders.cuts == 0));
    if (cut.stages.empty()) {
      ++impossible;
      continue;
    }
    CHECK(cut.bytes == Catch::Approx(orders.least).margin(1e-9));
    CHECK(is_balanced(graph, cut, stages, tolerance));
    cut_some += cut.bytes > 0;
    // Without the integer program: the best of a few lines, which is a division as well.
    const StageCut lines = cut_stages(graph, stages, {.tolerance = tolerance, .binaries = 0});
    CHECK_FALSE(lines.optimal);
    if (lines.stages.empty()) continue;
    CHECK(lines.bytes >= cut.bytes - 1e-9);
    CHECK(is_balanced(graph, lines, stages, tolerance));
    for (const systems::OperationGraph::Order& order : graph.orders)
      CHECK(lines.stages[order.first] <= lines.stages[order.last]);
  }
  CHECK(cut_some > count / 2);
  CHECK(impossible > 0);
}

TEST_CASE("data without an order may go back, and costs the same") {
  // A chain forward and a chain back, as in training: 0 -> 1 -> 2, 2 -> 3 -> 4 -> 5 with 3 beside
  // 2, 4 beside 1 and 5 beside 0, which share 10. The backward orders are turned.
  OperationGraph graph{.work = {1, 1, 1, 1, 1, 1}};
  add_edge(graph, 0, 1, 1);
  add_edge(graph, 1, 2, 1);
  graph.orders.insert(graph.orders.end(), {{4, 3}, {5, 4}});
  graph.data.insert(graph.data.end(),
                    {{{3, 4}, 1}, {{4, 5}, 1}, {{2, 3}, 10}, {{1, 4}, 10}, {{0, 5}, 10}});
  const StageCut cut = cut_stages(graph, 3);
  REQUIRE(cut.optimal);
  CHECK(cut.stages == std::vector<int>{0, 1, 2, 2, 1, 0});
  CHECK(cut.bytes == 4);
}

TEST_CASE("cycles and vertices that do not exist are rejected") {
  CHECK_THROWS_AS(systems::cut_stages({.work = {1, 1}, .orders = {{0, 1}, {1, 0}}}, 2),
                  contract_error);
  CHECK_THROWS_AS(systems::cut_stages({.work = {1}, .orders = {{0, 1}}}, 2), contract_error);
  CHECK_THROWS_AS(systems::cut_stages({.work = {1}}, 0), contract_error);
  CHECK(systems::cut_stages({.work = {1, 2}}, 1).stages == std::vector<int>{0, 0});
  CHECK(systems::cut_stages({.work = {0, 0}, .orders = {{0, 1}}}, 2).stages.size() == 2);
}

}  // namespace test_stage_cut
