// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors

// The decider of farms, in virtual time and under random events: nothing is lost, nothing is
// finished twice, and no worker idles without need.

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <set>
#include <vector>

#include <catch2/catch_approx.hpp>
#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>

#include <heddle/core.hpp>
#include <heddle/pattern.hpp>
#include <heddle/pattern/farm_forecast.hpp>

#include "support/cases.hpp"
#include "support/complaint.hpp"

namespace test_farm_decider {

using namespace heddle;
using Catch::Approx;
using Catch::Matchers::ContainsSubstring;

/// The time of an item: 1, plus or minus 50%.
double time_of(std::uint64_t seed, std::int64_t item) {
  return 0.5 + Random(seed, "time").uniform(static_cast<std::uint64_t>(item));
}

pattern::FarmForecast forecast(const pattern::FarmOptions& options, std::int64_t items,
                               std::uint64_t seed) {
  return pattern::forecast_farm(options, items, [&](Worker, const pattern::FarmTask& task) {
    return pattern::FarmForecast::Attempt{time_of(seed, task.item), true};
  });
}

TEST_CASE("a farm in virtual time keeps Graham's bound") {
  for (std::uint64_t seed = 0; seed < test::cases(100, 2'000); ++seed) {
    const Random random(seed, "shape");
    const int workers = 1 + static_cast<int>(random.below(0, 16));
    const auto items = static_cast<std::int64_t>(random.below(1, 100));
    double sum = 0;
    double longest = 0;
    for (std::int64_t i = 0; i < items; ++i) {
      sum += time_of(seed, i);
      longest = std::max(longest, time_of(seed, i));
    }
    const pattern::FarmForecast farm =
        forecast({.workers = workers, .ordered = false}, items, seed);
    // List scheduling: sum / W + (1 - 1 / W) longest.
    CHECK(farm.makespan <= sum / workers + (1 - 1.0 / workers) * longest + 1e-9);
    CHECK(farm.makespan >= std::max(sum / workers, longest) - 1e-9);
    double busy = 0;
    for (const double time : farm.busy) busy += time;
    CHECK(busy == Approx(sum));
    CHECK(farm.begun.size() == static_cast<std::size_t>(items));
  }
}

TEST_CASE("20 items a worker of times that differ by half use 95% of up to 64 workers") {
  const std::uint64_t farms = test::cases(20, 200);
  for (const int workers : {1, 2, 8, 64}) {
    double utilisation = 0;
    for (std::uint64_t seed = 0; seed < farms; ++seed)
      utilisation +=
          forecast({.workers = workers, .ordered = false}, 20 * workers, seed).utilisation();
    CAPTURE(workers);
    CHECK(utilisation / static_cast<double>(farms) >= 0.95);
  }
}

TEST_CASE("equal items in order take ceil(n / W) rounds") {
  for (const int workers : {1, 2, 3, 7})
    for (const std::int64_t items : {0, 1, 6, 7, 8, 50}) {
      const pattern::FarmForecast farm =
          pattern::forecast_farm({.workers = workers}, items, [](Worker, const pattern::FarmTask&) {
            return pattern::FarmForecast::Attempt{2.0, true};
          });
      CHECK(farm.makespan == 2.0 * static_cast<double>((items + workers - 1) / workers));
    }
}

TEST_CASE("a lag of twice the workers costs little, and a lag of 1 is one after another") {
  double ratio = 0;
  for (std::uint64_t seed = 0; seed < 20; ++seed) {
    const double free = forecast({.workers = 8, .in_flight = 1'000}, 160, seed).makespan;
    ratio += forecast({.workers = 8, .lag = 16}, 160, seed).makespan / free / 20;
    double sum = 0;
    for (std::int64_t i = 0; i < 160; ++i) sum += time_of(seed, i);
    CHECK(forecast({.workers = 8, .lag = 1}, 160, seed).makespan == Approx(sum));
  }
  CHECK(ratio <= 1.02);
}

TEST_CASE("silent, slow and failing workers lose nothing and finish nothing twice") {
  std::int64_t late = 0;
  for (std::uint64_t seed = 0; seed < test::cases(300, 10'000); ++seed) {
    const Random random(seed, "faults");
    const int workers = 1 + static_cast<int>(random.below(0, 6));
    const auto items = static_cast<std::int64_t>(random.below(1, 60));
    const pattern::FarmOptions options{.workers = workers,
                                       .attempts = 1 + static_cast<int>(random.below(2, 4)),
                                       .backoff = 0.3,
                                       .seed = seed,
                                       .ordered = random.below(3, 2) == 0,
                                       .lease = 2.0};
    std::uint64_t drawn = 10;
    pattern::FarmDecider decider(options);
    struct Running {
      pattern::FarmTask task;
      double end = 0;
      bool succeeded = true;
    };
    std::vector<std::optional<Running>> running(static_cast<std::size_t>(workers));
    std::vector<int> finished(static_cast<std::size_t>(items), 0);
    double now = 0;
    int steps = 0;
    for (bool ended = false; !ended; ++steps) {
      REQUIRE(steps < 100'000);
      ended = true;
      double later = now + 1e9;
      for (std::size_t w = 0; w < running.size(); ++w) {
        if (running[w]) {
          ended = false;
          continue;
        }
        auto next = decider.next(Worker{w}, now);
        while (next.answer == pattern::FarmDecider::Answer::propose) {
          decider.proposed(decider.items() < items);
          next = decider.next(Worker{w}, now);
        }
        if (next.answer == pattern::FarmDecider::Answer::end) continue;
        ended = false;
        if (next.until) later = std::min(later, *next.until);
        if (next.answer == pattern::FarmDecider::Answer::wait) continue;
        CHECK(next.task.attempt <= options.attempts);
        // One in ten is silent for ten leases, one in five fails.
        const double time = random.below(drawn++, 10) == 0 ? 20.0 : 0.1 + random.uniform(drawn++);
        running[w] = Running{next.task, now + time, random.below(drawn++, 5) != 0};
      }
      for (const auto& task : running)
        if (task) later = std::min(later, task->end);
      if (ended) break;
      now = later;
      for (std::size_t w = 0; w < running.size(); ++w) {
        if (!running[w] || running[w]->end > now) continue;
        const Running done = *running[w];
        running[w].reset();
        if (decider.report(Worker{w}, done.succeeded, now) ==
            pattern::FarmDecider::Fate::finished) {
          ++finished[static_cast<std::size_t>(done.task.item)];
          if (!done.succeeded) CHECK(done.task.attempt == options.attempts);
        }
      }
    }
    CHECK(decider.items() == items);
    CHECK(decider.finished_prefix() == items);
    for (const int times : finished) CHECK(times == 1);
    late += decider.late();
  }
  CHECK(late > 0);  // the leases were put to the test
}

TEST_CASE("the waits before attempts double, and depend on seed, item and attempt only") {
  const pattern::FarmOptions options{
      .attempts = 40, .backoff = 0.1, .longest_backoff = 3, .seed = 5};
  std::set<double> waits;
  for (std::int64_t item = 0; item < 50; ++item)
    for (int attempt = 2; attempt <= 40; ++attempt) {
      const double full = std::min(3.0, std::ldexp(0.1, attempt - 2));
      const double wait = pattern::impl::farm_backoff(options, {item, attempt});
      CHECK(wait >= 0.5 * full);
      CHECK(wait < full);
      CHECK(wait == pattern::impl::farm_backoff(options, {item, attempt}));
      waits.insert(wait / full);
    }
  CHECK(waits.size() > 1'000);  // jitter
}

TEST_CASE("a worker that breaks the rules of the decider is refused") {
  pattern::FarmDecider decider({.workers = 2});
  CHECK_THAT(test::message_of<contract_error>([&] { (void)decider.report(Worker{1}, true, 0); }),
             ContainsSubstring("the worker has no task"));
  REQUIRE(decider.next(Worker{0}, 0).answer == pattern::FarmDecider::Answer::propose);
  CHECK(decider.next(Worker{1}, 0).answer == pattern::FarmDecider::Answer::wait);  // one source
  decider.proposed(true);
  REQUIRE(decider.next(Worker{0}, 0).answer == pattern::FarmDecider::Answer::work);
  CHECK_THAT(test::message_of<contract_error>([&] { (void)decider.next(Worker{0}, 0); }),
             ContainsSubstring("asks again before it has reported"));
  CHECK_THAT(test::message_of<contract_error>([&] { (void)decider.next(Worker{2}, 0); }),
             ContainsSubstring("worker 2 of 2"));
  CHECK_THAT(test::message_of<contract_error>([] {
               (void)pattern::forecast_farm({}, 1, [](Worker, const pattern::FarmTask&) {
                 return pattern::FarmForecast::Attempt{-1, true};
               });
             }),
             ContainsSubstring("item 0, attempt 1: -1"));
}

}  // namespace test_farm_decider
