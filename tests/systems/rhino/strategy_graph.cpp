// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors

// choose_strategies() against brute force over all choices: with and without eliminated nodes, with
// a capacity, with forbidden pairs; and on long chains and ladders against dynamic programming.

#include <cstddef>
#include <cstdint>
#include <optional>
#include <random>
#include <string>
#include <vector>

#include <catch2/catch_approx.hpp>
#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers_exception.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>

#include <heddle/core/error.hpp>
#include <heddle/plan/solver/integer_program.hpp>
#include <heddle/plan/solver/linear_program.hpp>
#include <heddle/plan/solver/program_solver.hpp>
#include <heddle/systems/rhino/strategy_graph.hpp>

#include "support/cases.hpp"
#include "support/strategy_graphs.hpp"

namespace test_strategy_graph {

using namespace heddle;
using systems::StrategyChoice;
using systems::StrategyGraph;

using test::brute_force;
using test::forbidden;
using test::random_graph;

void compare(const StrategyGraph& graph, const StrategyChoice& found, double least) {
  REQUIRE(found.optimal);
  REQUIRE(found.strategies.has_value() == (least < forbidden));
  if (!found.strategies) return;
  CHECK(found.cost == graph.cost(*found.strategies));
  CHECK(found.cost == Catch::Approx(least).epsilon(1e-6));
  if (graph.capacity) CHECK(graph.bytes(*found.strategies) <= *graph.capacity * (1 + 1e-9));
}

TEST_CASE("the integer program's choice costs the least of all choices") {
  std::mt19937_64 random(29);
  std::size_t impossible = 0, solved = 0;
  const std::uint64_t count = test::cases(120, 20'000);
  for (std::uint64_t i = 0; i < count; ++i) {
    const StrategyGraph graph = random_graph(random, 1 + i % 10, i % 3 == 0 ? 0.3 : 0.0);
    const double least = brute_force(graph);
    impossible += least == forbidden;
    const StrategyChoice pure = choose_strategies(graph, {.programs = 100'000, .reduce = false});
    solved += pure.programs > 0;
    compare(graph, pure, least);
    compare(graph, choose_strategies(graph, {.programs = 100'000}), least);
  }
  CHECK(solved > count / 2);
  CHECK(impossible > 0);
  CHECK(impossible < count / 4);
}

TEST_CASE("a choice within a capacity costs the least of those that fit") {
  std::mt19937_64 random(31);
  std::size_t tight = 0, impossible = 0;
  const std::uint64_t count = test::cases(80, 10'000);
  for (std::uint64_t i = 0; i < count; ++i) {
    StrategyGraph graph = random_graph(random, 2 + i % 7, 0);
    const double free = brute_force(graph);
    const StrategyChoice unlimited = choose_strategies(graph, {.programs = 100'000});
    REQUIRE(unlimited.strategies);
    const double bytes = graph.bytes(*unlimited.strategies);
    graph.capacity = bytes * (0.5 + 0.05 * static_cast<double>(i % 13));
    const double least = brute_force(graph);
    tight += least > free && least < forbidden;
    impossible += least == forbidden;
    compare(graph, choose_strategies(graph, {.programs = 100'000}), least);
  }
  CHECK(tight > count / 10);
  CHECK(impossible > count / 20);
}

TEST_CASE("chains, trees and parallel branches of any length need no linear program") {
  std::mt19937_64 random(5);
  std::uniform_real_distribution<double> cost(0, 1);
  StrategyGraph graph;
  std::vector<double> least(4);  // dynamic programming along the chain
  for (std::size_t n = 0; n < 300; ++n) {
    systems::StrategyGraph::Node node;
    for (std::size_t s = 0; s < 4; ++s) node.costs.push_back(cost(random));
    if (n == 0) {
      least = node.costs;
    } else {
      systems::StrategyGraph::Edge edge{n - 1, n, {}};
      for (std::size_t p = 0; p < 16; ++p) edge.costs.push_back(cost(random));
      std::vector<double> next(4, forbidden);
      for (std::size_t t = 0; t < 4; ++t)
        for (std::size_t s = 0; s < 4; ++s)
          next[t] = std::min(next[t], least[s] + edge.costs[4 * s + t] + node.costs[t]);
      least = next;
      graph.edges.push_back(edge);
    }
    graph.nodes.push_back(node);
  }
  const StrategyChoice found = choose_strategies(graph);
  CHECK(found.optimal);
  CHECK(found.programs == 0);
  CHECK(found.cost == Catch::Approx(std::min({least[0], least[1], least[2], least[3]})));
}

TEST_CASE("windows improve a choice that is too large for one program") {
  std::mt19937_64 random(11);
  std::uniform_real_distribution<double> cost(0, 1);
  StrategyGraph graph;  // a ladder whose columns of four are complete: states of 2^4 by column
  constexpr std::size_t columns = 12;
  for (std::size_t n = 0; n < 4 * columns; ++n)
    graph.nodes.push_back({.name = "n", .costs = {cost(random), cost(random)}});
  const auto join = [&](std::size_t a, std::size_t b) {
    graph.edges.push_back({a, b, {cost(random), cost(random), cost(random), cost(random)}});
  };
  for (std::size_t c = 0; c < columns; ++c)
    for (std::size_t i = 0; i < 4; ++i) {
      for (std::size_t j = 0; j < i; ++j) join(4 * c + i, 4 * c + j);
      for (std::size_t j = 0; j < 4 && c > 0; ++j) join(4 * (c - 1) + i, 4 * c + j);
    }
  // Dynamic programming over columns.
  std::vector<double> least(16, 0);
  for (std::size_t c = 0; c < columns; ++c) {
    std::vector<double> next(16, forbidden);
    for (std::size_t now = 0; now < 16; ++now)
      for (std::size_t before = 0; before < (c == 0 ? 1 : 16); ++before) {
        double sum = least[before];
        for (std::size_t i = 0; i < 4; ++i) sum += graph.nodes[4 * c + i].costs[now >> i & 1];
        for (const systems::StrategyGraph::Edge& edge : graph.edges) {
          const std::size_t a = edge.from, b = edge.to;
          if (b / 4 == c && a / 4 == c)
            sum += edge.costs[2 * (now >> a % 4 & 1) + (now >> b % 4 & 1)];
          if (b / 4 == c && a / 4 + 1 == c)
            sum += edge.costs[2 * (before >> a % 4 & 1) + (now >> b % 4 & 1)];
        }
        next[now] = std::min(next[now], sum);
      }
    least = next;
  }
  const double optimum = std::ranges::min(least);
  const StrategyChoice found = choose_strategies(graph);
  REQUIRE(found.strategies);
  CHECK_FALSE(found.optimal);
  CHECK(found.cost >= optimum * (1 - 1e-9));
  CHECK(found.cost <= 1.1 * optimum);
}

TEST_CASE("a price of bytes makes a large choice fit") {
  std::mt19937_64 random(3);
  std::uniform_real_distribution<double> cost(0, 1);
  StrategyGraph graph;
  for (std::size_t n = 0; n < 40; ++n) {
    graph.nodes.push_back({.name = "n", .costs = {0, cost(random)}, .bytes = {100, 50}});
    if (n > 0) graph.edges.push_back({n - 1, n, {0, 0.1, 0.1, 0}});
  }
  graph.capacity = 3000;  // half of the nodes must be small
  const StrategyChoice found = choose_strategies(graph);
  REQUIRE(found.strategies);
  CHECK(graph.bytes(*found.strategies) <= 3000);
  CHECK(graph.bytes(*found.strategies) >= 2000);
  graph.capacity = 1999;
  CHECK_FALSE(choose_strategies(graph).strategies);
}

/// A solver that counts its integer programs, and fails after the first `good` ones.
struct CountingSolver {
  std::size_t* count;
  std::size_t good;

  [[nodiscard]] plan::LinearSolution<double> solve(const plan::LinearProgram<double>& p) const {
    return plan::solve(p);
  }
  [[nodiscard]] plan::IntegerSolution<double> solve_integer(const plan::LinearProgram<double>& p,
                                                            const std::vector<std::size_t>& whole,
                                                            std::size_t most) const {
    if (++*count <= good) return plan::solve_integer(p, whole, most);
    plan::IntegerSolution<double> nothing;
    nothing.outcome = plan::Outcome::inaccurate;
    return nothing;
  }
};
static_assert(plan::ProgramSolver<CountingSolver>);
static_assert(plan::ProgramSolver<plan::SimplexSolver>);
static_assert(plan::ProgramSolver<plan::AnySolver>);

TEST_CASE("the solver of the options is asked, and no optimum is claimed if it fails") {
  std::mt19937_64 random(37);
  std::size_t failed = 0;
  for (std::size_t i = 0; i < 20; ++i) {
    StrategyGraph graph = random_graph(random, 3 + i % 4, 0);
    if (i % 2 == 1) graph.capacity = 6e5 * static_cast<double>(graph.nodes.size());
    std::size_t asked = 0;
    const systems::StrategyOptions good{.reduce = false, .solver = CountingSolver{&asked, 1000}};
    const StrategyChoice found = choose_strategies(graph, good);
    const StrategyChoice own = choose_strategies(graph, {.reduce = false});
    CHECK(asked > 0);
    CHECK(found.strategies == own.strategies);
    CHECK(found.programs == own.programs);
    asked = 0;
    const systems::StrategyOptions bad{.reduce = false, .solver = CountingSolver{&asked, 0}};
    const StrategyChoice failing = choose_strategies(graph, bad);
    CHECK(asked > 0);
    CHECK_FALSE(failing.optimal);
    if (!failing.strategies) continue;
    ++failed;
    CHECK(failing.cost >= brute_force(graph) * (1 - 1e-9));
  }
  CHECK(failed > 0);
}

TEST_CASE("wrong graphs are rejected") {
  using Catch::Matchers::ContainsSubstring;
  using Catch::Matchers::MessageMatches;
  StrategyGraph graph{.nodes = {{"a", {1, 2}}, {"b", {1}}}, .edges = {{0, 1, {1}}}};
  CHECK_THROWS_MATCHES(choose_strategies(graph), contract_error,
                       MessageMatches(ContainsSubstring("edge 0 - 1: 1 costs for 2")));
  graph.edges = {{0, 2, {1, 1}}};
  CHECK_THROWS_MATCHES(choose_strategies(graph), contract_error,
                       MessageMatches(ContainsSubstring("edge 0 - 2 of 2 nodes")));
  graph.edges = {};
  graph.nodes[1].costs = {};
  CHECK_THROWS_MATCHES(choose_strategies(graph), contract_error,
                       MessageMatches(ContainsSubstring("node 1 'b'")));
  graph.nodes[1].costs = {-1};
  CHECK_THROWS_AS(choose_strategies(graph), contract_error);
  CHECK(choose_strategies(StrategyGraph{}).cost == 0);
}

}  // namespace test_strategy_graph
