// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors

// Checks that a search on a farm makes the trials of a serial search with the same lag, on any
// number of workers, whatever fails, and that its workers are busy in virtual time.

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <stdexcept>
#include <thread>
#include <vector>

#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>

#include <heddle/core/error.hpp>
#include <heddle/core/random.hpp>
#include <heddle/pattern/farm_forecast.hpp>
#include <heddle/systems/aiperf/farm_search.hpp>

#include "support/complaint.hpp"
#include "support/network_search.hpp"

namespace test_farm_search {

using namespace heddle;
using plan::TunePoint;
using plan::TuneTrial;

namespace {

bool same(const std::vector<TuneTrial>& a, const std::vector<TuneTrial>& b) {
  return std::equal(a.begin(), a.end(), b.begin(), b.end(),
                    [](const TuneTrial& one, const TuneTrial& other) {
                      return one.point == other.point && one.cost == other.cost;
                    });
}

/// The search one trial after another: proposal i sees the trials up to i - lag.
template <class Cost>
std::vector<TuneTrial> serial(const test::NetworkSearch& search, std::size_t trials,
                              std::size_t lag, Cost&& cost) {
  std::vector<TuneTrial> made;
  for (std::size_t i = 0; i < trials; ++i) {
    const std::size_t seen = i + 1 > lag ? i + 1 - lag : 0;
    TuneTrial next;
    next.point = search.propose(i, std::span<const TuneTrial>(made.data(), seen));
    next.cost = cost(i, next.point);
    made.push_back(next);
  }
  return made;
}

}  // namespace

TEST_CASE("a search makes the trials of a serial one for any number of workers") {
  for (const int lag : {1, 4, 16}) {
    const test::NetworkSearch search{.seed = 3};
    const auto expected =
        serial(search, 120, static_cast<std::size_t>(lag),
               [&](std::size_t, const TunePoint& point) { return search.loss(point); });
    for (const int workers : {1, 2, 3, 8}) {
      const auto trials = systems::farm_search<TuneTrial>(
          {.workers = workers, .lag = lag}, 120,
          [&](std::uint64_t number, std::span<const TuneTrial> history) {
            return search.propose(number, history);
          },
          [&](const TunePoint& point) {
            if (point[0] == 1) std::this_thread::yield();
            return search.loss(point);
          });
      CAPTURE(lag, workers);
      CHECK(same(trials, expected));
    }
  }
}

TEST_CASE("failed, infeasible and slow evaluations leave the other trials as they are") {
  const test::NetworkSearch search{.seed = 5};
  const auto outcome = [&](std::size_t number, const TunePoint& point) -> std::optional<double> {
    if (number % 7 == 3 || point[2] == 2) return std::nullopt;
    return search.loss(point);
  };
  const auto expected = serial(search, 60, 6, outcome);
  std::atomic<int> slow{0};
  const auto trials = systems::farm_search<TuneTrial>(
      {.workers = 3, .attempts = 2, .backoff = 1e-5, .lag = 6, .lease = 0.02}, 60,
      [&](std::uint64_t number, std::span<const TuneTrial> history) {
        return search.propose(number, history);
      },
      [&](const TunePoint& point, const pattern::FarmTask& task) -> std::optional<double> {
        if (task.item % 7 == 3) throw std::runtime_error("out of memory");
        if (task.item == 20 && slow++ == 0)  // its worker is silent, and another one takes over
          std::this_thread::sleep_for(std::chrono::milliseconds(100));
        return outcome(static_cast<std::size_t>(task.item), point);
      });
  CHECK(same(trials, expected));
  CHECK(slow >= 2);
}

TEST_CASE("a worker that is killed costs its trial one more attempt, and no trial is lost") {
  for (const int workers : {2, 8, 64}) {
    const std::int64_t items = 20 * workers;
    std::vector<int> begun(static_cast<std::size_t>(items), 0);
    const pattern::FarmForecast forecast =
        pattern::forecast_farm({.workers = workers, .lag = 2 * workers, .lease = 5}, items,
                               [&](Worker worker, const pattern::FarmTask& task) {
                                 // Worker 1 ends with its third trial, and never reports within the
                                 // time.
                                 static_cast<void>(task);
                                 const bool killed = +worker == 1 && task.item >= 2 * workers;
                                 return pattern::FarmForecast::Attempt{killed ? 1e6 : 1.0, true};
                               });
    for (const pattern::FarmTask& task : forecast.begun)
      ++begun[static_cast<std::size_t>(task.item)];
    CAPTURE(workers);
    CHECK(std::count(begun.begin(), begun.end(), 1) == items - 1);
    CHECK(std::count(begun.begin(), begun.end(), 2) == 1);
    CHECK(forecast.failed.empty());
    CHECK(forecast.late == 1);
  }
}

TEST_CASE("searches of 1 to 64 workers keep them busy in virtual time") {
  const auto efficiency = [](int workers) {
    double sum = 0;
    for (std::uint64_t seed = 0; seed < 10; ++seed) {
      const Random random(seed, "times");
      sum += pattern::forecast_farm(
                 {.workers = workers, .lag = 2 * workers}, 20 * workers,
                 [&](Worker, const pattern::FarmTask& task) {
                   return pattern::FarmForecast::Attempt{
                       0.5 + random.uniform(static_cast<std::uint64_t>(task.item)), true};
                 })
                 .utilisation();
    }
    return sum / 10;
  };
  for (const int workers : {1, 2, 4, 8, 16, 32, 64}) {
    CAPTURE(workers);
    CHECK(efficiency(workers) >= 0.95);
  }
}

TEST_CASE("a search without a lag is rejected, and an error of a proposal ends it") {
  const auto search = [](const pattern::FarmOptions& options, std::int64_t trials) {
    return systems::farm_search<TuneTrial>(
        options, trials,
        [](std::uint64_t number, std::span<const TuneTrial>) {
          if (number == 3) throw std::runtime_error("no proposal");
          return TunePoint{number};
        },
        [](const TunePoint&) { return 1.0; });
  };
  CHECK_THAT(test::message_of<contract_error>([&] { (void)search({}, 1); }),
             Catch::Matchers::ContainsSubstring("lag = 0"));
  CHECK_THAT(test::message_of<contract_error>([&] { (void)search({.lag = 1}, -1); }),
             Catch::Matchers::ContainsSubstring("trials = -1"));
  CHECK_THROWS_AS(search({.workers = 2, .lag = 4}, 5), std::runtime_error);
  CHECK(search({.workers = 2, .lag = 4}, 3).size() == 3);
  CHECK(search({.lag = 1}, 0).empty());
}

}  // namespace test_farm_search
