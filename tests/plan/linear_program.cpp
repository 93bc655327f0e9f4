// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors

// Linear and integer programs against brute force over vertices and whole points, on exact
// numbers, and against closed forms.

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <optional>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include <catch2/catch_approx.hpp>
#include <catch2/catch_test_macros.hpp>

#include <heddle/core/error.hpp>
#include <heddle/plan/solver/integer_program.hpp>
#include <heddle/plan/solver/linear_program.hpp>

#include "support/cases.hpp"
#include "support/plain_program.hpp"
#include "support/rational.hpp"

namespace test_linear_program {

using heddle::contract_error;
using heddle::plan::LinearProgram;
using heddle::plan::Outcome;
using heddle::plan::Relation;
using heddle::plan::solve;
using heddle::plan::solve_integer;
using heddle::test::Plain;
using heddle::test::program_of;
using heddle::test::random_plain;
using heddle::test::Rational;

namespace {

/// The solution of square * x = side, or nothing if the matrix is singular.
std::optional<std::vector<Rational>> gauss(std::vector<std::vector<Rational>> square,
                                           std::vector<Rational> side) {
  const std::size_t n = side.size();
  for (std::size_t c = 0; c < n; ++c) {
    std::size_t pivot = c;
    while (pivot < n && square[pivot][c] == Rational()) ++pivot;
    if (pivot == n) return {};
    std::swap(square[c], square[pivot]);
    std::swap(side[c], side[pivot]);
    for (std::size_t r = 0; r < n; ++r) {
      if (r == c || square[r][c] == Rational()) continue;
      const Rational factor = square[r][c] / square[c][c];
      for (std::size_t k = c; k < n; ++k) square[r][k] = square[r][k] - factor * square[c][k];
      side[r] = side[r] - factor * side[c];
    }
  }
  for (std::size_t c = 0; c < n; ++c) side[c] = side[c] / square[c][c];
  return side;
}

bool fulfils(const Plain& plain, const std::vector<Rational>& x) {
  for (std::size_t v = 0; v < plain.size(); ++v)
    if (x[v] < Rational() || (plain.upper[v] && Rational(*plain.upper[v]) < x[v])) return false;
  for (std::size_t r = 0; r < plain.rows.size(); ++r) {
    Rational sum;
    for (std::size_t v = 0; v < plain.size(); ++v) sum = sum + Rational(plain.rows[r][v]) * x[v];
    const Rational side(plain.sides[r]);
    if (plain.relations[r] != Relation::at_least && side < sum) return false;
    if (plain.relations[r] != Relation::at_most && sum < side) return false;
  }
  return true;
}

Rational cost_of(const Plain& plain, const std::vector<Rational>& x) {
  Rational sum;
  for (std::size_t v = 0; v < plain.size(); ++v) sum = sum + Rational(plain.cost[v]) * x[v];
  return sum;
}

/// The least cost of all vertices: points at which as many constraints are tight as there are
/// variables. Nothing if no vertex fulfils the constraints.
std::optional<Rational> least_vertex(const Plain& plain) {
  struct Face {
    std::vector<Rational> factors;
    Rational side;
  };
  std::vector<Face> faces;
  const std::size_t n = plain.size();
  for (std::size_t r = 0; r < plain.rows.size(); ++r)
    faces.push_back({{plain.rows[r].begin(), plain.rows[r].end()}, Rational(plain.sides[r])});
  for (std::size_t v = 0; v < n; ++v) {
    std::vector<Rational> unit(n);
    unit[v] = Rational(1);
    faces.push_back({unit, Rational()});
    if (plain.upper[v]) faces.push_back({unit, Rational(*plain.upper[v])});
  }
  std::optional<Rational> least;
  std::vector<bool> taken(faces.size());
  std::fill(taken.begin(), taken.begin() + static_cast<std::ptrdiff_t>(n), true);
  do {
    std::vector<std::vector<Rational>> square;
    std::vector<Rational> side;
    for (std::size_t f = 0; f < faces.size(); ++f) {
      if (!taken[f]) continue;
      square.push_back(faces[f].factors);
      side.push_back(faces[f].side);
    }
    const auto x = gauss(square, side);
    if (!x || !fulfils(plain, *x)) continue;
    const Rational cost = cost_of(plain, *x);
    if (!least || cost < *least) least = cost;
  } while (std::prev_permutation(taken.begin(), taken.end()));
  return least;
}

/// The directions in which a program has no end, as a program of its own.
Plain directions(const Plain& plain) {
  Plain result = plain;
  std::fill(result.sides.begin(), result.sides.end(), 0);
  for (auto& upper : result.upper) upper = upper ? 0 : 1;
  return result;
}

}  // namespace

TEST_CASE("linear programs have the cost of their best vertex") {
  std::mt19937_64 random(71);
  int optimal = 0;
  int infeasible = 0;
  int unbounded = 0;
  for (std::uint64_t i = 0; i < heddle::test::cases(1000, 100'000); ++i) {
    const Plain plain = random_plain(random, i % 8 == 0 ? 6 : 4, i % 2 == 0);
    const auto exact = solve(program_of<Rational>(plain));
    const auto rounded = solve(program_of<double>(plain));
    const std::optional<Rational> least = least_vertex(plain);
    INFO("case " << i);
    REQUIRE(exact.outcome == rounded.outcome);
    if (!least) {
      ++infeasible;
      REQUIRE(exact.outcome == Outcome::infeasible);
      continue;
    }
    if (*least_vertex(directions(plain)) < Rational()) {
      ++unbounded;
      REQUIRE(exact.outcome == Outcome::unbounded);
      continue;
    }
    ++optimal;
    REQUIRE(exact.outcome == Outcome::optimal);
    REQUIRE(exact.cost == *least);
    REQUIRE(fulfils(plain, exact.values));
    REQUIRE(cost_of(plain, exact.values) == *least);
    const auto real = program_of<double>(plain);
    double cost = 0;
    for (std::size_t v = 0; v < plain.size(); ++v) cost += plain.cost[v] * rounded.values[v];
    REQUIRE(cost == Catch::Approx(rounded.cost).margin(1e-9));
    const auto again = solve(real);
    REQUIRE(again.values == rounded.values);  // deterministic
  }
  CHECK(optimal > 300);
  CHECK(infeasible > 50);
  CHECK(unbounded > 50);
}

TEST_CASE("dual prices are what the right sides cost") {
  std::mt19937_64 random(72);
  int compared = 0;
  for (std::uint64_t i = 0; i < heddle::test::cases(300, 30'000); ++i) {
    const Plain plain = random_plain(random, 4, true);
    const auto solution = solve(program_of<Rational>(plain));
    if (solution.outcome != Outcome::optimal) continue;
    // Weak duality, with the prices of the upper bounds at their best: the bound is the cost.
    Rational bound;
    std::vector<Rational> reduced(plain.cost.begin(), plain.cost.end());
    for (std::size_t r = 0; r < plain.rows.size(); ++r) {
      const Rational price = solution.prices[r];
      if (plain.relations[r] == Relation::at_most) REQUIRE_FALSE(Rational() < price);
      if (plain.relations[r] == Relation::at_least) REQUIRE_FALSE(price < Rational());
      bound = bound + price * Rational(plain.sides[r]);
      for (std::size_t v = 0; v < plain.size(); ++v)
        reduced[v] = reduced[v] - price * Rational(plain.rows[r][v]);
    }
    for (std::size_t v = 0; v < plain.size(); ++v)
      if (reduced[v] < Rational()) bound = bound + reduced[v] * Rational(*plain.upper[v]);
    REQUIRE(bound == solution.cost);
    ++compared;
  }
  CHECK(compared > 100);
}

TEST_CASE("variables may have any bounds or none") {
  LinearProgram<Rational> program;
  const auto free = program.add_variable("free", 1, std::nullopt);
  const auto below = program.add_variable("below", -1, std::nullopt, Rational(7, 2));
  const auto shifted = program.add_variable("shifted", 2, Rational(-3), Rational(5));
  program.add_constraint("sum", {{free, 1}, {below, 1}, {shifted, 1}}, Relation::at_least, 0);
  program.add_constraint("twice", {{free, 1}, {free, 1}}, Relation::at_least, -8);
  const auto solution = solve(program);
  REQUIRE(solution.outcome == Outcome::optimal);
  CHECK(solution.values[free] == Rational(-1, 2));
  CHECK(solution.values[below] == Rational(7, 2));
  CHECK(solution.values[shifted] == Rational(-3));
  CHECK(solution.cost == Rational(-10));
  CHECK(solution.prices == std::vector<Rational>{1, 0});

  LinearProgram<Rational> endless;
  endless.add_variable("x", 1, std::nullopt);
  CHECK(solve(endless).outcome == Outcome::unbounded);
  CHECK(solve(LinearProgram<double>()).outcome == Outcome::optimal);
}

TEST_CASE("Beale's program, on which the greatest descent goes in circles, ends") {
  LinearProgram<Rational> program;
  for (const Rational cost : {Rational(-3, 4), Rational(150), Rational(-1, 50), Rational(6)})
    program.add_variable("x", cost);
  const auto row = [&](std::vector<Rational> factors, Rational side) {
    std::vector<std::pair<std::size_t, Rational>> terms;
    for (std::size_t v = 0; v < factors.size(); ++v) terms.push_back({v, factors[v]});
    program.add_constraint("row", terms, Relation::at_most, side);
  };
  row({Rational(1, 4), -60, Rational(-1, 25), 9}, 0);
  row({Rational(1, 2), -90, Rational(-1, 50), 3}, 0);
  row({0, 0, 1, 0}, 1);
  const auto solution = solve(program);
  REQUIRE(solution.outcome == Outcome::optimal);
  CHECK(solution.cost == Rational(-1, 20));
}

TEST_CASE("ratios of shards are those of the speeds where only computation counts") {
  // HAP's program without communication: t >= ratio / speed on every device. Even shards take
  // 1 / (n least speed), so the gain is sum(speeds) / (n least speed).
  const auto gain = [](const std::vector<Rational>& speeds) {
    LinearProgram<Rational> program;
    const auto longest = program.add_variable("longest", 1);
    std::vector<std::pair<std::size_t, Rational>> all;
    Rational least = speeds.front();
    for (const Rational& speed : speeds) {
      const auto ratio = program.add_variable("ratio", 0, Rational(), Rational(1));
      program.add_constraint("device", {{longest, speed}, {ratio, -1}}, Relation::at_least, 0);
      all.push_back({ratio, 1});
      if (speed < least) least = speed;
    }
    program.add_constraint("all", all, Relation::equal, 1);
    const auto solution = solve(program);
    REQUIRE(solution.outcome == Outcome::optimal);
    return Rational(1) / (Rational(static_cast<int>(speeds.size())) * least) / solution.cost;
  };
  std::vector<Rational> v100_and_p100(16, Rational(157));
  v100_and_p100.resize(64, Rational(93));
  CHECK(gain(v100_and_p100) == Rational(16 * 157 + 48 * 93, 64 * 93));  // 1.172
  CHECK(gain({312, 312, 125, 125}) == Rational(312 + 125, 2 * 125));    // 1.748
}

TEST_CASE("integer programs have the cost of their best whole point") {
  std::mt19937_64 random(73);
  int optimal = 0;
  int infeasible = 0;
  for (std::uint64_t i = 0; i < heddle::test::cases(400, 40'000); ++i) {
    const Plain plain = random_plain(random, 5, true);
    std::vector<std::size_t> whole;
    for (std::size_t v = 0; v < plain.size(); ++v) whole.push_back(v);
    std::optional<Rational> least;
    std::vector<Rational> x(plain.size());
    const auto visit = [&](auto&& self, std::size_t v) -> void {
      if (v == plain.size()) {
        if (fulfils(plain, x) && (!least || cost_of(plain, x) < *least)) least = cost_of(plain, x);
        return;
      }
      for (int value = 0; value <= *plain.upper[v]; ++value) {
        x[v] = Rational(value);
        self(self, v + 1);
      }
    };
    visit(visit, 0);
    INFO("case " << i);
    const auto exact = solve_integer(program_of<Rational>(plain), whole);
    const auto rounded = solve_integer(program_of<double>(plain), whole);
    REQUIRE(exact.outcome == (least ? Outcome::optimal : Outcome::infeasible));
    REQUIRE(rounded.outcome == exact.outcome);
    ++(least ? optimal : infeasible);
    if (!least) continue;
    REQUIRE(exact.cost == *least);
    REQUIRE(exact.bound == *least);
    REQUIRE(fulfils(plain, exact.values));
    REQUIRE(Rational(std::lround(rounded.cost)) == *least);
    for (const double value : rounded.values) REQUIRE(value == std::round(value));
  }
  CHECK(optimal > 100);
  CHECK(infeasible > 50);
}

TEST_CASE("a knapsack of mixed variables is filled, and a search may end early") {
  // Weights 12, 2, 1, 4, 1 of values 4, 2, 1, 10, 2, into 15: all but the first, value 15. The
  // sixth is a liquid of value 1/10 a unit.
  LinearProgram<double> program;
  const int weights[] = {12, 2, 1, 4, 1};
  const int values[] = {4, 2, 1, 10, 2};
  std::vector<std::pair<std::size_t, double>> weight;
  std::vector<std::size_t> whole;
  for (int i = 0; i < 5; ++i) {
    whole.push_back(program.add_variable("item", -values[i], 0.0, 1.0));
    weight.push_back({whole.back(), weights[i]});
  }
  weight.push_back({program.add_variable("liquid", -0.1), 1});
  program.add_constraint("weight", weight, Relation::at_most, 15);
  const auto solution = solve_integer(program, whole);
  REQUIRE(solution.outcome == Outcome::optimal);
  CHECK(solution.cost == Catch::Approx(-15.7));
  CHECK(solution.values == std::vector<double>{0, 1, 1, 1, 1, 7});
  const auto early = solve_integer(program, whole, 1);
  CHECK(early.outcome == Outcome::inaccurate);
  CHECK(early.bound <= -15.7);
}

TEST_CASE("programs with numbers that are none, or without their variables, are refused") {
  LinearProgram<double> program;
  const double nan = std::numeric_limits<double>::quiet_NaN();
  const double infinity = std::numeric_limits<double>::infinity();
  CHECK_THROWS_AS(program.add_variable("x", nan), contract_error);
  CHECK_THROWS_AS(program.add_variable("x", 1, 2.0, 1.0), contract_error);
  CHECK_THROWS_AS(program.add_variable("x", 1, -infinity), contract_error);
  CHECK_THROWS_AS(program.add_constraint("row", {{0, 1.0}}, Relation::equal, 1), contract_error);
  const auto x = program.add_variable("x", 1);
  CHECK_THROWS_AS(program.add_constraint("row", {{x, nan}}, Relation::equal, 1), contract_error);
  CHECK_THROWS_AS(program.add_constraint("row", {{x, 1.0}}, Relation::equal, infinity),
                  contract_error);
  CHECK_THROWS_AS(solve_integer(program, {1}), contract_error);
  program.add_constraint("row", {{x, 1.0}}, Relation::at_least, 1e308);
  program.add_constraint("row", {{x, 1e-300}}, Relation::at_most, 1e-320);
  CHECK(solve(program).outcome != Outcome::unbounded);
}

}  // namespace test_linear_program
