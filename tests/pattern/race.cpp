// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors

// Races of threads and of ranks that are threads: who wins, who stops, and what an error does.

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <stdexcept>
#include <string>
#include <vector>

#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>

#include <heddle/core.hpp>
#include <heddle/execute.hpp>
#include <heddle/pattern.hpp>

#include "support/complaint.hpp"
#include "support/walk_sat.hpp"

namespace test_race {

using namespace heddle;
using Catch::Matchers::ContainsSubstring;

constexpr std::uint64_t poll = 50;  // flips between two looks at the race

/// Walks until a model is found or the race is lost. Its seed is the walker's number.
std::optional<std::vector<bool>> walk(const test::Formula& formula, pattern::Walker& walker) {
  test::WalkSat run(formula, static_cast<std::uint64_t>(walker.number()));
  for (std::uint64_t flips = 0; !run.is_solved(); ++flips) {
    if (flips % poll == 0 && walker.stop_requested()) return std::nullopt;
    run.flip();
    walker.work();
  }
  return run.values();
}

/// The flips of each walker that is not stopped, and the walker with the fewest.
struct Alone {
  std::vector<std::uint64_t> flips;
  int best = 0;

  Alone(const test::Formula& formula, int walkers) {
    for (int w = 0; w < walkers; ++w) {
      // flips_of_run counts the first assignment too.
      flips.push_back(
          static_cast<std::uint64_t>(test::flips_of_run(formula, static_cast<std::uint64_t>(w))) -
          1);
      if (flips.back() < flips[static_cast<std::size_t>(best)]) best = w;
    }
  }
};

TEST_CASE("a race by work has the same winner for any number of threads") {
  for (std::uint64_t seed = 0; seed < 5; ++seed) {
    const test::Formula formula = test::planted_formula(60, 252, seed);
    const Alone alone(formula, 8);
    const std::uint64_t least = alone.flips[static_cast<std::size_t>(alone.best)];
    for (int threads = 1; threads <= 8; ++threads) {
      const auto result = pattern::race(
          {.walkers = 8, .threads = threads, .order = pattern::RaceOptions::Order::by_work},
          [&](pattern::Walker& walker) { return walk(formula, walker); });
      CAPTURE(seed, threads);
      REQUIRE(result.value);
      CHECK(formula.is_satisfied(*result.value));
      CHECK(result.winner == alone.best);
      REQUIRE(result.work.size() == 8);
      CHECK(result.work[static_cast<std::size_t>(alone.best)] == least);
      for (std::size_t w = 0; w < 8; ++w) CHECK(result.work[w] <= alone.flips[w]);
    }
  }
}

TEST_CASE("walkers stop at their next look once another has won") {
  // Walker 0 wins at once; the others would never end by themselves.
  for (const int threads : {2, 5}) {
    std::atomic<bool> won{false};
    std::atomic<int> late{0};
    const auto result =
        pattern::race({.walkers = threads}, [&](pattern::Walker& walker) -> std::optional<int> {
          if (walker.number() == 0) {
            won = true;
            return 42;
          }
          for (int looks_after = 0;;) {
            if (walker.stop_requested()) return std::nullopt;
            if (won && ++looks_after > 1'000'000) ++late;
          }
        });
    CHECK(result.value == 42);
    CHECK(result.winner == 0);
    CHECK(late == 0);
  }
}

TEST_CASE("nothing is found where all walkers give up") {
  const auto none = pattern::race({.walkers = 3, .threads = 2},
                                  [](pattern::Walker& walker) -> std::optional<std::string> {
                                    walker.work(5);
                                    return std::nullopt;
                                  });
  CHECK_FALSE(none.value);
  CHECK(none.winner == -1);
  CHECK(none.work == std::vector<std::uint64_t>{5, 5, 5});
}

TEST_CASE("a walker that gives up leaves its thread to the next") {
  const auto result = pattern::race({.walkers = 10, .threads = 2},
                                    [](pattern::Walker& walker) -> std::optional<int> {
                                      if (walker.number() < 7) return std::nullopt;
                                      return walker.number();
                                    });
  REQUIRE(result.value);
  CHECK(*result.value >= 7);
  CHECK(*result.value == result.winner);
}

TEST_CASE("an exception ends a race, and the lowest walker's is thrown") {
  for (const pattern::RaceOptions::Order order :
       {pattern::RaceOptions::Order::by_time, pattern::RaceOptions::Order::by_work}) {
    const auto failing = [](pattern::Walker& walker) -> std::optional<int> {
      if (walker.number() == 1 || walker.number() == 2)
        throw std::runtime_error("walker " + std::to_string(walker.number()));
      while (!walker.stop_requested()) walker.work();
      return std::nullopt;
    };
    CHECK_THAT(test::message_of<std::runtime_error>(
                   [&] { (void)pattern::race({.walkers = 4, .order = order}, failing); }),
               ContainsSubstring("walker"));
  }
}

TEST_CASE("a race of ranks tells all who won, and gives the winner its result") {
  for (int ranks = 1; ranks <= 4; ++ranks) {
    for (std::uint64_t seed = 0; seed < 3; ++seed) {
      const test::Formula formula = test::planted_formula(60, 252, seed);
      const Alone alone(formula, ranks);
      for (const pattern::RaceOptions::Order order :
           {pattern::RaceOptions::Order::by_time, pattern::RaceOptions::Order::by_work}) {
        std::vector<int> winners(static_cast<std::size_t>(ranks));
        std::vector<std::vector<std::uint64_t>> work(static_cast<std::size_t>(ranks));
        std::atomic<int> results{0};
        std::atomic<bool> satisfied{true};
        run_threads(ranks, [&](ThreadTransport& transport) {
          const auto result =
              pattern::race(transport, {.order = order},
                            [&](pattern::Walker& walker) { return walk(formula, walker); });
          winners[+transport.rank()] = result.winner;
          work[+transport.rank()] = result.work;
          if (result.value) ++results;
          if (result.value && !formula.is_satisfied(*result.value)) satisfied = false;
          if (result.value && transport.rank() != result.winner) satisfied = false;
        });
        CAPTURE(ranks, seed);
        CHECK(results == 1);
        CHECK(satisfied);
        for (const int winner : winners) CHECK(winner == winners[0]);
        for (const auto& of_rank : work) CHECK(of_rank == work[0]);
        if (order == pattern::RaceOptions::Order::by_work) CHECK(winners[0] == alone.best);
      }
    }
  }
}

TEST_CASE("a rank whose search throws ends the race of all") {
  std::atomic<int> lost{0};
  CHECK_THROWS(run_threads(3, [&](ThreadTransport& transport) {
    try {
      (void)pattern::race(transport, {}, [&](pattern::Walker& walker) -> std::optional<int> {
        if (transport.rank() == 1) throw std::runtime_error("no more memory");
        while (!walker.stop_requested()) {
        }
        return std::nullopt;
      });
    } catch (const communication_error& error) {
      if (std::string(error.what()).find("no more memory") != std::string::npos) ++lost;
      throw;
    }
  }));
  CHECK(lost == 2);
}

TEST_CASE("a race without walkers is refused") {
  const auto search = [](pattern::Walker&) -> std::optional<int> { return 1; };
  CHECK_THAT(test::message_of<contract_error>([&] { (void)pattern::race({.walkers = 0}, search); }),
             ContainsSubstring("walkers = 0"));
  CHECK_THAT(test::message_of<contract_error>(
                 [&] { (void)pattern::race({.walkers = 1, .threads = -1}, search); }),
             ContainsSubstring("threads = -1"));
}

}  // namespace test_race
