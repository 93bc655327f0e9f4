// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors

// Heddle's solver of linear and integer programs and COIN-OR's Clp and Cbc find the same optima, in
// programs made at random and in those of the planners.

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <random>
#include <utility>
#include <vector>

#include <catch2/catch_approx.hpp>
#include <catch2/catch_test_macros.hpp>

#include <heddle/core/error.hpp>
#include <heddle/machine/machine.hpp>
#include <heddle/plan/solver/cbc.hpp>
#include <heddle/plan/solver/program_solver.hpp>
#include <heddle/systems/hap/hap.hpp>
#include <heddle/systems/rhino/rhino.hpp>
#include <heddle/systems/rhino/stage_cut.hpp>
#include <heddle/systems/rhino/strategy_graph.hpp>

#include "support/cases.hpp"
#include "support/linear_orders.hpp"
#include "support/plain_program.hpp"
#include "support/random_program.hpp"
#include "support/strategy_graphs.hpp"

namespace test_cbc {

using Catch::Approx;
using heddle::plan::CbcSolver;
using heddle::plan::IntegerSolution;
using heddle::plan::LinearProgram;
using heddle::plan::LinearSolution;
using heddle::plan::Outcome;
using heddle::plan::ProgramSolver;
using heddle::plan::Relation;
using heddle::plan::SimplexSolver;
using heddle::test::cases;
using heddle::test::program_of;

static_assert(ProgramSolver<CbcSolver>);

namespace {

/// Returns a program with so many variables and rows, some dense and some not, that 0 fulfils.
LinearProgram<double> large_program(std::mt19937_64& random, std::size_t n, std::size_t rows) {
  std::uniform_real_distribution<double> number(-1, 1);
  LinearProgram<double> program;
  for (std::size_t v = 0; v < n; ++v)
    program.add_variable("x", number(random), v % 5 == 0 ? std::nullopt : std::optional(0.0),
                         10 + number(random));
  for (std::size_t r = 0; r < rows; ++r) {
    std::vector<std::pair<std::size_t, double>> terms;
    for (std::size_t v = 0; v < n; ++v)
      if (random() % 3 != 0) terms.emplace_back(v, number(random));
    const double side = std::abs(number(random));
    const bool turned = r % 2 == 0;
    program.add_constraint("row", std::move(terms), turned ? Relation::at_least : Relation::at_most,
                           turned ? -side : side);
  }
  return program;
}

}  // namespace

TEST_CASE("linear programs have the same outcome and cost") {
  std::mt19937_64 random(81);
  int ends[4] = {};
  for (std::uint64_t i = 0; i < cases(500, 100'000); ++i) {
    const auto program = program_of<double>(heddle::test::random_plain(random, 6, i % 2 == 0));
    const LinearSolution<double> own = SimplexSolver().solve(program);
    const LinearSolution<double> other = CbcSolver().solve(program);
    INFO("case " << i);
    REQUIRE(own.outcome == other.outcome);
    ++ends[static_cast<std::size_t>(own.outcome)];
    if (own.outcome == Outcome::optimal) REQUIRE(own.cost == Approx(other.cost).margin(1e-7));
  }
  CHECK(ends[static_cast<std::size_t>(Outcome::optimal)] > 150);
  CHECK(ends[static_cast<std::size_t>(Outcome::infeasible)] > 25);
  CHECK(ends[static_cast<std::size_t>(Outcome::unbounded)] > 25);
  CHECK(ends[static_cast<std::size_t>(Outcome::inaccurate)] == 0);
}

TEST_CASE("linear programs of dozens of variables have the same cost, and unique prices") {
  std::mt19937_64 random(82);
  int optimal = 0;
  for (std::uint64_t i = 0; i < cases(100, 5'000); ++i) {
    const auto program = large_program(random, 5 + i % 40, 3 + i % 30);
    const LinearSolution<double> own = SimplexSolver().solve(program);
    const LinearSolution<double> other = CbcSolver().solve(program);
    INFO("case " << i);
    REQUIRE(own.outcome == other.outcome);
    if (own.outcome != Outcome::optimal) continue;
    ++optimal;
    REQUIRE(own.cost == Approx(other.cost).margin(1e-6));
    // Coefficients are real numbers, so the optimum and its prices are unique.
    for (std::size_t v = 0; v < own.values.size(); ++v)
      REQUIRE(own.values[v] == Approx(other.values[v]).margin(1e-5));
    for (std::size_t r = 0; r < own.prices.size(); ++r)
      REQUIRE(own.prices[r] == Approx(other.prices[r]).margin(1e-5));
  }
  CHECK(optimal > 30);
}

TEST_CASE("integer programs have the same outcome and cost") {
  std::mt19937_64 random(83);
  int optimal = 0, infeasible = 0;
  for (std::uint64_t i = 0; i < cases(100, 20'000); ++i) {
    const auto plain = heddle::test::random_plain(random, 6, true);
    std::vector<std::size_t> whole;
    for (std::size_t v = 0; v < plain.size(); ++v)
      if (i % 2 == 0 || v % 2 == 0) whole.push_back(v);
    const auto program = program_of<double>(plain);
    const IntegerSolution<double> own = SimplexSolver().solve_integer(program, whole);
    const IntegerSolution<double> other = CbcSolver().solve_integer(program, whole);
    INFO("case " << i);
    REQUIRE(own.outcome == other.outcome);
    ++(own.outcome == Outcome::optimal ? optimal : infeasible);
    if (own.outcome != Outcome::optimal) continue;
    REQUIRE(own.cost == Approx(other.cost).margin(1e-6));
    for (const std::size_t variable : whole)
      REQUIRE(other.values[variable] == std::round(other.values[variable]));
  }
  CHECK(optimal > 40);
  CHECK(infeasible > 10);
}

TEST_CASE("knapsacks whose best fillings differ by 1e-7 have the same cost") {
  std::mt19937_64 random(84);
  for (std::uint64_t i = 0; i < cases(4, 1'000); ++i) {
    LinearProgram<double> program;
    std::vector<std::size_t> whole;
    std::vector<std::pair<std::size_t, double>> weight;
    double sum = 0;
    for (int item = 0; item < 10; ++item) {
      const double each = 10 + static_cast<double>(random() % 20);
      const double value = each / 30 + 1e-7 * static_cast<double>(random() % 100);
      whole.push_back(program.add_variable("item", -value, 0.0, 1.0));
      weight.emplace_back(whole.back(), each);
      sum += each;
    }
    program.add_constraint("weight", weight, Relation::at_most, std::floor(sum / 2));
    double best = 0;  // by trying all
    for (unsigned chosen = 0; chosen < 1u << 10; ++chosen) {
      double cost = 0, load = 0;
      for (std::size_t item = 0; item < 10; ++item)
        if (chosen >> item & 1) {
          cost += program.variables()[item].cost;
          load += weight[item].second;
        }
      if (load <= std::floor(sum / 2)) best = std::min(best, cost);
    }
    INFO("case " << i);
    const auto own = SimplexSolver().solve_integer(program, whole);
    const auto other = CbcSolver().solve_integer(program, whole);
    REQUIRE(own.outcome == Outcome::optimal);
    REQUIRE(own.cost == Approx(best).epsilon(1e-8));
    REQUIRE(other.outcome == Outcome::optimal);
    REQUIRE(other.cost == Approx(best).epsilon(1e-8));
  }
}

TEST_CASE("strategies and stage cuts are as good with either solver") {
  std::mt19937_64 random(85);
  std::size_t solved = 0;
  for (std::uint64_t i = 0; i < cases(20, 2'000); ++i) {
    auto graph = heddle::test::random_graph(random, 2 + i % 8, i % 3 == 0 ? 0.3 : 0.0);
    if (i % 2 == 0) graph.capacity = 2e5 * static_cast<double>(graph.nodes.size());
    const double least = heddle::test::brute_force(graph);
    const auto found =
        choose_strategies(graph, {.programs = 100'000, .reduce = false, .solver = CbcSolver()});
    INFO("case " << i);
    REQUIRE(found.optimal);
    REQUIRE(found.strategies.has_value() == (least < heddle::test::forbidden));
    if (found.strategies) REQUIRE(found.cost == Approx(least).epsilon(1e-6));
    solved += found.programs > 0;

    heddle::systems::OperationGraph chain;
    for (std::size_t v = 0; v < 4 + i % 4; ++v) {
      chain.work.push_back(static_cast<double>(1 + random() % 3));
      for (std::size_t u = 0; u < v; ++u)
        if (random() % 3 == 0) {
          chain.orders.push_back({u, v});
          chain.data.push_back({{u, v}, static_cast<double>(1 + random() % 9)});
        }
    }
    const auto cut =
        cut_stages(chain, 2, {.tolerance = 0.3, .programs = 100'000, .solver = CbcSolver()});
    const heddle::test::AllOrders orders(chain, 2, 0.3);
    REQUIRE(cut.optimal);
    REQUIRE(cut.stages.empty() == (orders.cuts == 0));
    if (!cut.stages.empty()) REQUIRE(cut.bytes == Approx(orders.least).margin(1e-9));
  }
  CHECK(solved > 10);
}

TEST_CASE("HAP and Rhino find plans of the same time with either solver") {
  std::mt19937_64 random(86);
  const heddle::Machine machine =
      heddle::Machine::hierarchical({{.name = "fast", .speed = 2}, {.name = "slow", .speed = 1}},
                                    {{.name = "all", .ranks = 2, .link = {1, 10}}});
  for (std::uint64_t i = 0; i < cases(10, 500); ++i) {
    const auto program = heddle::test::random_program(random, 6);
    const auto own = hap(program, machine, {.flops = 1});
    const auto other = hap(program, machine, {.flops = 1, .solver = CbcSolver()});
    CHECK(other.price.time() == Approx(own.price.time()));
    const auto first = rhino(program, machine, {.level = 2, .flops = 1});
    const auto second = rhino(program, machine, {.level = 2, .flops = 1, .solver = CbcSolver()});
    CHECK(second.cost == Approx(first.cost));
  }
}

TEST_CASE("a search may end early, and numbers that Clp takes as infinite are not solved") {
  LinearProgram<double> program;
  const auto x = program.add_variable("x", 1);
  program.add_constraint("row", {{x, 1.0}}, Relation::at_least, 1e30);
  CHECK(CbcSolver().solve(program).outcome == Outcome::inaccurate);
  CHECK(CbcSolver().solve_integer(program, {x}).outcome == Outcome::inaccurate);
  CHECK_THROWS_AS(CbcSolver().solve_integer(program, {1}), heddle::contract_error);
  CHECK(CbcSolver().solve(LinearProgram<double>()).outcome == Outcome::optimal);
  CHECK(CbcSolver().solve_integer(LinearProgram<double>(), {}).outcome == Outcome::optimal);

  LinearProgram<double> sum;  // a variable that stands in a row twice
  const auto y = sum.add_variable("y", -1);
  sum.add_constraint("twice", {{y, 1.0}, {y, 1.0}}, Relation::at_most, 5);
  CHECK(CbcSolver().solve(sum).values == std::vector<double>{2.5});
  CHECK(CbcSolver().solve_integer(sum, {y}).values == std::vector<double>{2});
}

}  // namespace test_cbc
