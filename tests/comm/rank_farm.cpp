// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
// ranks: 4

// Farms and sweeps over MPI ranks: the results of threads, and a sink that throws.

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include <catch2/catch_test_macros.hpp>
#include <mpi.h>

#include <heddle/comm/mpi_transport.hpp>
#include <heddle/core/error.hpp>
#include <heddle/core/index.hpp>
#include <heddle/core/text.hpp>
#include <heddle/core/units.hpp>
#include <heddle/pattern/equations.hpp>
#include <heddle/pattern/farm.hpp>
#include <heddle/pattern/fixed_point.hpp>
#include <heddle/pattern/rank_farm.hpp>
#include <heddle/pattern/rank_fixed_point.hpp>

namespace test_rank_farm {

using namespace heddle;
using Row = std::vector<double>;
using Seen = std::span<const pattern::FarmOutcome<Row>>;

/// A search with rows of 1 to 20 000 numbers, of which some go in a header and some do not.
struct Search {
  std::vector<Row> results;
  std::int64_t given = 0;

  std::optional<Row> propose(Seen seen) {
    if (given == 60) return std::nullopt;
    double first = static_cast<double>(given);
    for (const auto& outcome : seen)
      first = 0.7 * first + (outcome.value ? outcome.value->back() : 1.0);
    ++given;
    return Row(given % 9 == 0 ? 20'000u : static_cast<std::size_t>(given % 5 + 1), first);
  }
  static Row evaluate(const Row& row, const pattern::FarmTask& task) {
    if ((task.item + task.attempt) % 6 == 0) throw std::runtime_error(text("item ", task.item));
    Row result = row;
    for (double& x : result) x = x * (1 - x) / (1 + x * x);
    return result;
  }
  void take(pattern::FarmOutcome<Row>&& outcome) {
    results.push_back(outcome.value ? *outcome.value : Row{-1.0 * outcome.attempts});
  }
};

TEST_CASE("a farm over MPI ranks gives the bits of a farm on threads") {
  Search expected;
  pattern::farm(
      {.workers = 2, .attempts = 2, .backoff = 1e-5, .lag = 4},
      [&](Seen seen) { return expected.propose(seen); }, Search::evaluate,
      [&](std::int64_t, pattern::FarmOutcome<Row>&& outcome) {
        expected.take(std::move(outcome));
      });
  MpiTransport transport(MPI_COMM_WORLD);
  for (const int prefetch : {1, 2}) {
    Search search;
    const pattern::FarmReport report = pattern::farm(
        transport, {.attempts = 2, .backoff = 1e-5, .lag = 4, .prefetch = prefetch},
        [&](Seen seen) { return search.propose(seen); }, Search::evaluate,
        [&](std::int64_t, pattern::FarmOutcome<Row>&& outcome) {
          search.take(std::move(outcome));
        });
    CHECK(report.items == 60);
    CHECK(report.attempts > 60);
    if (transport.rank() == Rank{0}) {
      CHECK(search.results == expected.results);
    } else {
      CHECK(search.results.empty());
    }
  }
}

TEST_CASE("a sink that throws ends the farm on every MPI rank") {
  MpiTransport transport(MPI_COMM_WORLD);
  int next = 0;
  const auto run = [&] {
    pattern::farm(
        transport, {.prefetch = 2, .wait = {.idle = Idle::nap, .watchdog = 60}},
        [&] { return std::optional<std::string>(std::string(100'000, 'x') + text(next++)); },
        [](const std::string& item) { return item; },
        [](std::int64_t number, pattern::FarmOutcome<std::string>&&) {
          if (number == 7) throw std::runtime_error("the sink broke");
        });
  };
  if (transport.rank() == Rank{0})
    CHECK_THROWS_AS(run(), std::runtime_error);
  else
    CHECK_THROWS_AS(run(), communication_error);
}

TEST_CASE("sweeps over MPI ranks give the bits of sweeps on threads") {
  MpiTransport transport(MPI_COMM_WORLD);
  const auto rule = [](int i, const pattern::ValuesBefore<double>& before) {
    return i == 0 ? 0.5 : std::tanh(0.9 * before[i - 1] + std::cos(i));
  };
  const Equations<double, decltype(rule)> equations(100, 0.0, rule);
  const auto expected = pattern::fixed_point(equations, {.threads = 4});
  const auto x = pattern::fixed_point(transport, equations, {.reach = 1});
  CHECK(x.values == expected.values);
  CHECK(x.sweeps == expected.sweeps);
  CHECK(x.converged);
}

}  // namespace test_rank_farm
