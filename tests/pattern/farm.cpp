// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors

// Farms on threads: each item once, in order, with the attempts of an oracle, whatever fails.

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <map>
#include <mutex>
#include <optional>
#include <span>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>

#include <heddle/core.hpp>
#include <heddle/pattern.hpp>

#include "support/complaint.hpp"
#include "support/farm_waits.hpp"
#include "support/rounds.hpp"

namespace test_farm {

using namespace heddle;
using Catch::Matchers::ContainsSubstring;

/// The source of the numbers 0 .. count - 1.
auto numbers(int count) {
  return [count, next = 0]() mutable {
    return next < count ? std::optional<int>(next++) : std::nullopt;
  };
}

/// The oracle: whether an attempt fails is a function of seed, item and attempt.
bool fails(std::uint64_t seed, std::int64_t item, int attempt) {
  return Random(seed, "failures").uniform(static_cast<std::uint64_t>(8 * item + attempt)) < 0.2;
}

TEST_CASE("a farm finishes each item once, in order where that is asked for") {
  for (const int workers : {1, 2, 3, 8}) {
    for (const int count : {0, 1, 7, 1'000}) {
      for (const bool ordered : {true, false}) {
        std::vector<std::int64_t> arrived;
        std::vector<int> results(static_cast<std::size_t>(count), -1);
        const pattern::FarmReport report = pattern::farm(
            {.workers = workers, .ordered = ordered}, numbers(count),
            [](int item) { return item * 3; },
            [&](std::int64_t number, pattern::FarmOutcome<int>&& outcome) {
              arrived.push_back(number);
              results[static_cast<std::size_t>(number)] = *outcome.value;
            });
        CAPTURE(workers, count, ordered);
        CHECK(report.items == count);
        CHECK(report.attempts == count);
        CHECK(report.failed == 0);
        REQUIRE(arrived.size() == static_cast<std::size_t>(count));
        if (!ordered) std::sort(arrived.begin(), arrived.end());
        for (int i = 0; i < count; ++i) {
          CHECK(arrived[static_cast<std::size_t>(i)] == i);
          CHECK(results[static_cast<std::size_t>(i)] == 3 * i);
        }
      }
    }
  }
}

TEST_CASE("a farm on 8 threads takes at most 1.05 times as long as its decider says") {
  std::array forms{test::Form{
      "a farm on 8 threads over its decider", [] {
        test::FarmWaits waits{160};
        pattern::farm(
            {.workers = 8}, [&] { return waits.source(); }, test::FarmWaits::work,
            [&](std::int64_t, pattern::FarmOutcome<Seconds>&& outcome) { waits.sink(outcome); });
        REQUIRE(waits.times.size() == 160);
        return waits.over_forecast(8);
      }}};
  const test::Spread& ratio = forms[0].spread;
  if (!test::measure_in_rounds(forms, [&] { return ratio.median() <= 1.05; }))
    SKIP(test::no_result);
  CHECK(ratio.least() > 0.9);  // eight threads work at once, each on one item
  CHECK(ratio.median() <= 1.05);
}

TEST_CASE("a farm over a range returns its outcomes in order") {
  const std::vector<std::string> words{"a", "bcd", "", "ef"};
  const auto sizes = pattern::farm({.workers = 3}, words, [](const std::string& word) {
    if (word.empty()) throw std::invalid_argument("an empty word");
    return word.size();
  });
  REQUIRE(sizes.size() == 4);
  CHECK(sizes[1].value == 3);
  CHECK_FALSE(sizes[2].value);
  CHECK(sizes[2].error == "an empty word");
  CHECK(sizes[2].attempts == 1);
  CHECK(sizes[3].value == 2);
}

TEST_CASE("failed attempts are repeated as often as the oracle says") {
  constexpr int count = 400;
  for (const std::uint64_t seed : {1u, 2u}) {
    for (const int workers : {1, 3, 8}) {
      std::vector<int> items(count);
      for (int i = 0; i < count; ++i) items[static_cast<std::size_t>(i)] = i;
      const auto outcomes =
          pattern::farm({.workers = workers, .attempts = 3, .backoff = 1e-5, .seed = seed}, items,
                        [&](int item, const pattern::FarmTask& task) {
                          if (task.item != item) throw std::logic_error("another item's task");
                          if (fails(seed, item, task.attempt))
                            throw std::runtime_error(text("attempt ", task.attempt));
                          return 10 * item + task.attempt;
                        });
      for (int i = 0; i < count; ++i) {
        int attempt = 1;
        while (attempt < 3 && fails(seed, i, attempt)) ++attempt;
        const bool succeeds = !fails(seed, i, attempt);
        const auto& outcome = outcomes[static_cast<std::size_t>(i)];
        CAPTURE(seed, workers, i);
        CHECK(outcome.attempts == attempt);
        CHECK(outcome.value.has_value() == succeeds);
        if (succeeds) CHECK(*outcome.value == 10 * i + attempt);
        CHECK(outcome.error == (succeeds ? "" : "attempt 3"));
      }
    }
  }
}

TEST_CASE("a source that sees results proposes the same for any number of workers") {
  constexpr int count = 60;
  for (const int lag : {1, 2, 5}) {
    std::vector<std::uint64_t> expected;
    for (const int workers : {1, 2, 3, 8}) {
      std::vector<std::uint64_t> proposed;
      std::int64_t i = 0;
      bool right_view = true;
      const auto source = [&](std::span<const pattern::FarmOutcome<std::uint64_t>> seen)
          -> std::optional<std::uint64_t> {
        if (i == count) return std::nullopt;
        right_view = right_view && static_cast<std::int64_t>(seen.size()) ==
                                       std::max<std::int64_t>(0, i - lag + 1);
        std::uint64_t next = static_cast<std::uint64_t>(++i);
        for (const auto& outcome : seen) next = 31 * next + *outcome.value;
        proposed.push_back(next);
        return next;
      };
      pattern::farm(
          {.workers = workers, .lag = lag}, source,
          [](std::uint64_t item) {
            if (item % 3 == 0) std::this_thread::yield();
            return item * item + 1;
          },
          [](std::int64_t, pattern::FarmOutcome<std::uint64_t>&&) {});
      if (expected.empty()) expected = proposed;
      CAPTURE(lag, workers);
      CHECK(right_view);
      CHECK(proposed.size() == count);
      CHECK(proposed == expected);
    }
  }
}

TEST_CASE("light items go in chunks, and none of them waits behind a heavy one") {
  constexpr int count = 20'000;
  // Among light items, two heavy ones follow each other: they must run at the same time.
  const auto is_heavy = [](int item) { return item == 9'000 || item == 9'001; };
  for (const int workers : {1, 2, 3}) {
    for (const bool ordered : {true, false}) {
      std::atomic<int> at_once{0}, most{1}, light_behind{0};
      std::atomic<bool> begun{false};
      std::vector<std::int64_t> arrived;
      bool right = true;
      const pattern::FarmReport report = pattern::farm(
          {.workers = workers, .attempts = 3, .backoff = 1e-6, .seed = 5, .ordered = ordered},
          numbers(count),
          [&](int item, const pattern::FarmTask& task) {
            const auto late = std::chrono::steady_clock::now() + std::chrono::seconds(10);
            // Those after the heavy ones must not all be done before a slow thread begins these.
            while (workers > 2 && item > 9'001 && !begun && std::chrono::steady_clock::now() < late)
              std::this_thread::yield();
            if (is_heavy(item)) {
              if (++at_once == 2) most = 2;
              begun = true;
              // It ends when the others have come by, or if they do not come for long.
              while ((most < std::min(workers, 2) || (workers > 2 && light_behind == 0)) &&
                     std::chrono::steady_clock::now() < late)
                std::this_thread::sleep_for(std::chrono::milliseconds(1));
              --at_once;
            } else if (at_once > 0) {
              ++light_behind;
            }
            if (fails(5, item, task.attempt)) throw std::runtime_error("no");
            return task.attempt;
          },
          [&](std::int64_t number, pattern::FarmOutcome<int>&& outcome) {
            arrived.push_back(number);
            int attempt = 1;
            while (attempt < 3 && fails(5, number, attempt)) ++attempt;
            right = right && outcome.attempts == attempt &&
                    outcome.value.has_value() == !fails(5, number, attempt);
          });
      CAPTURE(workers, ordered);
      CHECK(report.items == count);
      CHECK(right);
      if (ordered) CHECK(std::is_sorted(arrived.begin(), arrived.end()));
      std::sort(arrived.begin(), arrived.end());
      REQUIRE(arrived.size() == count);
      CHECK(arrived.back() == count - 1);
      CHECK(std::adjacent_find(arrived.begin(), arrived.end()) == arrived.end());
      if (workers > 1) CHECK(most == 2);
      if (workers > 2) CHECK(light_behind > 0);
    }
  }
}

TEST_CASE("a silent worker's item goes to another, and its late result is dropped") {
  std::atomic<int> begun{0};
  std::vector<int> delivered;
  const pattern::FarmReport report = pattern::farm(
      {.workers = 2, .lease = 0.02}, numbers(6),
      [&](int item) {
        // The first attempt at item 2 sleeps longer than its lease.
        if (item == 2 && begun++ == 0) {
          std::this_thread::sleep_for(std::chrono::milliseconds(150));
          return -1;
        }
        return item;
      },
      [&](std::int64_t, pattern::FarmOutcome<int>&& outcome) {
        delivered.push_back(*outcome.value);
      });
  CHECK(delivered == std::vector<int>{0, 1, 2, 3, 4, 5});
  CHECK(report.late == 1);
  CHECK(report.attempts == 7);
}

TEST_CASE("no more items than in_flight are in memory") {
  struct Counted {
    explicit Counted(std::atomic<int>& count) : live(&count) { ++*live; }
    Counted(Counted&& other) noexcept : live(other.live) { other.live = nullptr; }
    Counted& operator=(Counted&&) = delete;
    ~Counted() {
      if (live != nullptr) --*live;
    }
    std::atomic<int>* live;
  };
  for (const bool ordered : {true, false}) {
    std::atomic<int> live{0};
    std::atomic<int> most{0};
    int given = 0;
    pattern::farm(
        {.workers = 3, .in_flight = 5, .ordered = ordered},
        [&]() -> std::optional<Counted> {
          if (given++ == 200) return std::nullopt;
          return Counted(live);
        },
        [&](const Counted&) {
          const int now = live;
          int seen = most;
          while (now > seen && !most.compare_exchange_weak(seen, now)) {
          }
          return now;
        },
        [](std::int64_t, pattern::FarmOutcome<int>&&) {});
    // One more is in the hands of the source.
    CHECK(most <= 6);
    CHECK(live == 0);
  }
}

TEST_CASE("an exception of the source or the sink ends the farm") {
  for (const int workers : {1, 4}) {
    int given = 0;
    CHECK_THAT(test::message_of<std::runtime_error>([&] {
                 pattern::farm(
                     {.workers = workers},
                     [&]() -> std::optional<int> {
                       if (++given == 20) throw std::runtime_error("the source broke");
                       return given;
                     },
                     [](int item) { return item; },
                     [](std::int64_t, pattern::FarmOutcome<int>&&) {});
               }),
               ContainsSubstring("the source broke"));
    int delivered = 0;
    CHECK_THAT(test::message_of<std::runtime_error>([&] {
                 pattern::farm(
                     {.workers = workers}, numbers(100), [](int item) { return item; },
                     [&](std::int64_t, pattern::FarmOutcome<int>&&) {
                       if (++delivered == 5) throw std::runtime_error("the disk is full");
                     });
               }),
               ContainsSubstring("the disk is full"));
    CHECK(delivered == 5);
  }
}

TEST_CASE("a sink that threw gets no outcome of the attempts that ran meanwhile") {
  std::atomic<int> waiting = 0;  // three attempts, until the sink has the outcome of item 0
  std::atomic<bool> broken = false;
  int delivered = 0;
  const auto work = [&](int item) {
    if (item > 0) ++waiting;
    while (item > 0 ? !broken : waiting < 3) std::this_thread::yield();
    return item;
  };
  CHECK_THAT(test::message_of<std::runtime_error>([&] {
               pattern::farm({.workers = 4}, numbers(100), work,
                             [&](std::int64_t, pattern::FarmOutcome<int>&&) {
                               ++delivered;
                               broken = true;
                               throw std::runtime_error("the disk is full");
                             });
             }),
             ContainsSubstring("the disk is full"));
  CHECK(delivered == 1);
}

TEST_CASE("wrong options of a farm are refused") {
  const auto message = [](const pattern::FarmOptions& options) {
    return test::message_of<contract_error>(
        [&] { (void)pattern::farm(options, std::vector<int>{1}, [](int item) { return item; }); });
  };
  CHECK_THAT(message({.workers = 0}), ContainsSubstring("workers = 0"));
  CHECK_THAT(message({.attempts = 0}), ContainsSubstring("attempts = 0"));
  CHECK_THAT(message({.in_flight = -1}), ContainsSubstring("in_flight = -1"));
  CHECK_THAT(message({.lease = -1}), ContainsSubstring("lease = -1"));
  CHECK_THAT(test::message_of<contract_error>(
                 [] { pattern::FarmDecider({.workers = 2, .ordered = false, .lag = 3}); }),
             ContainsSubstring("set ordered, or lag = 0"));
  CHECK_THAT(test::message_of<contract_error>([] { pattern::FarmDecider({.lag = -1}); }),
             ContainsSubstring("lag = -1"));
}

}  // namespace test_farm
