// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors

// Two coupled branches of a solver in moving coordinates (positions and values), against exact
// solutions, fixed grids and fine references, in any order and on any workers.

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <limits>
#include <numbers>
#include <random>
#include <vector>

#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>

#include <heddle/plan/place_branches.hpp>
#include <heddle/schedule/order/weave.hpp>
#include <heddle/simulate/costs.hpp>
#include <heddle/simulate/simulate.hpp>

#include "characteristics.hpp"
#include "support/cases.hpp"
#include "support/complaint.hpp"
#include "support/convection.hpp"

namespace test_characteristics {

using namespace heddle;
using examples::Convection;
using examples::MovingPoints;

namespace {

/// Returns the Schedule of `problem` on so many workers.
Schedule placed(const Convection& problem, int workers) {
  return plan::place_branches(
             examples::graph_of(problem), StageCosts{.forward = 1},
             {.workers = workers, .outputs = examples::output_bytes(problem), .steps = 0})
      .schedule;
}

MovingPoints solve(const Convection& problem, int workers) {
  return test::solve(problem, placed(problem, workers));
}

}  // namespace

TEST_CASE("convection with a constant speed is exact to rounding at any speed") {
  double upwind_before = 0;
  for (const double speed : {1.0, 10.0, 100.0, 1e6}) {
    const Convection problem{.points = 64, .speed = speed, .time = 1, .steps = 20};
    const MovingPoints end = solve(problem, 2);
    // Rounding of 20 sums of positions up to the speed and one circle.
    const double rounding = 20 * std::numeric_limits<double>::epsilon() * (speed + 7);
    for (std::size_t i = 0; i < end.values.size(); ++i) {
      const double label = static_cast<double>(i) * problem.spacing();
      CHECK(std::abs(end.positions[i] - (label + speed)) <= rounding);
      CHECK(end.values[i] == std::sin(label));
      CHECK(std::abs(end.values[i] - std::sin(end.positions[i] - speed)) <= 2 * rounding);
    }
    if (speed > 100) continue;
    // The error of a fixed grid grows with the distance in cells.
    const double error = test::largest_error(test::upwind(64, speed, 1),
                                             [&](double x) { return std::sin(x - speed); });
    CHECK(error > 1.5 * upwind_before);
    CHECK(error > 0.01);
    upwind_before = error;
  }
}

TEST_CASE("Burgers' equation before its shock is within 1e-4 of the implicit solution") {
  const Convection problem{.points = 256, .burgers = true, .time = 0.5, .steps = 10};
  const MovingPoints end = solve(problem, 2);
  CHECK(test::largest_error(end.grid, [](double x) { return test::burgers(x, 0.5); }) <= 1e-4);
  for (std::size_t i = 0; i < end.values.size(); ++i)
    CHECK(std::abs(end.values[i] - test::burgers(end.positions[i], 0.5)) <= 1e-13);
}

TEST_CASE("with viscosity the joins are within 1e-3 of the references") {
  const Convection convection{
      .points = 128, .speed = 50, .viscosity = 0.1, .time = 1, .joins = 100};
  CHECK(test::largest_error(solve(convection, 2).grid,
                            [](double x) { return std::exp(-0.1) * std::sin(x - 50); }) <= 1e-3);
  const Convection burgers{
      .points = 256, .burgers = true, .viscosity = 0.1, .time = 1, .joins = 800};
  const std::vector<double> fine = test::viscous_burgers(1024, 0.1, 1);
  const std::vector<double> coarse = test::viscous_burgers(512, 0.1, 1);
  const std::vector<double> ours = solve(burgers, 2).grid;
  double error = 0, of_reference = 0;
  for (std::size_t i = 0; i < ours.size(); ++i) {
    error = std::max(error, std::abs(ours[i] - fine[4 * i]));
    of_reference = std::max(of_reference, std::abs(coarse[2 * i] - fine[4 * i]));
  }
  INFO("error " << error << ", reference " << of_reference);
  CHECK(of_reference <= 2e-4);  // of the second order: a third of it is the fine one's own error
  CHECK(error <= 1e-3);
}

TEST_CASE("the branches give the same bits in any order and on any workers") {
  const Convection problem{
      .points = 32, .speed = 2, .burgers = true, .viscosity = 0.05, .time = 0.3, .joins = 8};
  Convection several = problem;
  several.viscosity = 0;
  several.joins = 3;
  several.steps = 3;
  std::mt19937_64 random(23);
  for (const Convection& each : {problem, several}) {
    const MovingPoints serial = solve(each, 1);
    REQUIRE(serial.grid.size() == 32);
    for (const int workers : {2, 3, 4}) CHECK(solve(each, workers).grid == serial.grid);
    // On two workers the branches run side by side: a join and the steps between two joins.
    CHECK(simulate(placed(each, 2), StageCosts{.forward = 1}).makespan() ==
          1 + each.joins * (each.steps + 1));
    const StageGraph graph = examples::graph_of(each);
    for (std::uint64_t c = 0; c < test::cases(20, 2'000); ++c) {
      const std::size_t ranks = 1 + random() % 3;
      Orders orders{"any order", std::vector<std::vector<Order>>(ranks), graph};
      std::vector<int> missing(static_cast<std::size_t>(graph.stages), 0);
      for (const StageGraph::Edge& edge : graph.edges) ++missing[+edge.to];
      std::vector<Stage> ready{Stage{0}};
      while (!ready.empty()) {
        std::swap(ready[random() % ready.size()], ready.back());
        const Stage stage = ready.back();
        ready.pop_back();
        orders.ranks[random() % ranks].push_back({Kind::forward, stage, Item{0}});
        for (const StageGraph::Edge& edge : graph.edges)
          if (edge.from == stage && --missing[+edge.to] == 0) ready.push_back(edge.to);
      }
      const MovingPoints other =
          test::solve(each, weave(orders, {.activation = 32 * sizeof(double)}));
      CHECK(other.grid == serial.grid);
      CHECK(other.positions == serial.positions);
      CHECK(other.values == serial.values);
    }
  }
}

TEST_CASE("viscosity between joins is rejected") {
  CHECK_THAT(test::message_of<contract_error>(
                 [] { (void)examples::graph_of(Convection{.viscosity = 0.1, .steps = 2}); }),
             Catch::Matchers::ContainsSubstring("steps = 2"));
}

}  // namespace test_characteristics
