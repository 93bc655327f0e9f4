// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors

// Farms over ranks that are threads: the outcomes of a serial loop for any number of ranks, also if
// ranks throw, are silent, or give other options.

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <mutex>
#include <optional>
#include <span>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>

#include <heddle/core/error.hpp>
#include <heddle/core/index.hpp>
#include <heddle/core/random.hpp>
#include <heddle/core/text.hpp>
#include <heddle/execute/clock.hpp>
#include <heddle/execute/thread_transport.hpp>
#include <heddle/execute/timeline_costs.hpp>
#include <heddle/execute/trail.hpp>
#include <heddle/pattern/farm.hpp>
#include <heddle/pattern/rank_farm.hpp>
#include <heddle/schedule/timeline.hpp>
#include <heddle/simulate/simulate.hpp>

#include "support/cases.hpp"
#include "support/complaint.hpp"

namespace test_rank_farm {

using namespace heddle;
using Catch::Matchers::ContainsSubstring;

using Words = std::vector<std::string>;

/// Item `i` of a source of texts of many lengths.
std::string item_of(std::int64_t i) {
  return std::string(static_cast<std::size_t>(37 * i % 211), static_cast<char>('a' + i % 26)) +
         text(i);
}

/// The work: several results, long and short ones.
Words work_on(const std::string& item, int attempt) {
  return {item.substr(0, item.size() / 2), text(item.size(), "/", attempt), {}};
}

/// The oracle: whether an attempt fails is a function of item and attempt.
bool fails(std::int64_t item, int attempt) {
  return Random(7, "failures").uniform(static_cast<std::uint64_t>(8 * item + attempt)) < 0.2;
}

/// What a sink got, as text in the order of the items.
struct Taken {
  std::vector<std::int64_t> order;
  std::vector<std::string> outcomes;  // by item
  explicit Taken(std::size_t count) : outcomes(count) {}
  void operator()(std::int64_t number, pattern::FarmOutcome<Words>&& outcome) {
    order.push_back(number);
    std::string& line = outcomes[static_cast<std::size_t>(number)];
    line += text("<", outcome.attempts, " ", outcome.error, ">");
    if (outcome.value)
      for (const std::string& word : *outcome.value) line += word + ";";
  }
};

TEST_CASE("a farm over ranks gives the outcomes of a loop, in order where asked for") {
  constexpr std::int64_t count = 300;
  Taken expected(count);
  for (std::int64_t i = 0; i < count; ++i) {
    pattern::FarmOutcome<Words> outcome;
    for (outcome.attempts = 1; outcome.attempts < 3 && fails(i, outcome.attempts);)
      ++outcome.attempts;
    if (fails(i, outcome.attempts))
      outcome.error = "attempt 3";
    else
      outcome.value = work_on(item_of(i), outcome.attempts);
    expected(i, std::move(outcome));
  }
  const auto failed = std::count_if(
      expected.outcomes.begin(), expected.outcomes.end(),
      [](const std::string& line) { return line.find("<3 attempt 3>") != std::string::npos; });
  REQUIRE(failed > 0);
  for (const int ranks : {1, 2, 3, 4, 9})
    for (const bool ordered : {true, false})
      for (const int prefetch : {1, 3}) {
        Taken taken(count);
        std::vector<pattern::FarmReport> reports(static_cast<std::size_t>(ranks));
        std::int64_t next = 0;
        run_threads(ranks, [&](ThreadTransport& transport) {
          reports[+transport.rank()] = pattern::farm(
              transport, {.attempts = 3, .backoff = 1e-5, .ordered = ordered, .prefetch = prefetch},
              [&]() -> std::optional<std::string> {
                if (next == count) return std::nullopt;
                return item_of(next++);
              },
              [](const std::string& item, const pattern::FarmTask& task) {
                if (fails(task.item, task.attempt))
                  throw std::runtime_error(text("attempt ", task.attempt));
                return work_on(item, task.attempt);
              },
              taken);
          // The transport has no message left: a second farm works on it.
          pattern::farm(
              transport, {}, [] { return std::optional<int>(); }, [](int i) { return i; },
              [](std::int64_t, pattern::FarmOutcome<int>&&) {});
        });
        CAPTURE(ranks, ordered, prefetch);
        CHECK(taken.outcomes == expected.outcomes);
        if (!ordered) std::sort(taken.order.begin(), taken.order.end());
        CHECK(taken.order == expected.order);
        for (const pattern::FarmReport& report : reports) {
          CHECK(report.items == count);
          CHECK(report.failed == failed);
          CHECK(report.late == 0);
          CHECK(report.known == 0);
        }
      }
}

TEST_CASE("a farm over a range needs no packed items") {
  struct File {
    const char* name;
  };
  const std::vector<File> files{{"a"}, {"bcd"}, {""}, {"ef"}};
  std::vector<pattern::FarmOutcome<std::size_t>> sizes;
  run_threads(3, [&](ThreadTransport& transport) {
    const auto got = pattern::farm(transport, {.prefetch = 2}, files, [](const File& file) {
      const std::string name = file.name;
      if (name.empty()) throw std::invalid_argument("an empty name");
      return name.size();
    });
    if (transport.rank() == Rank{0}) sizes = got;
  });
  REQUIRE(sizes.size() == 4);
  CHECK(sizes[1].value == 3);
  CHECK_FALSE(sizes[2].value);
  CHECK(sizes[2].error == "an empty name");
  CHECK(sizes[3].value == 2);
}

/// A search that reads what it sees, on threads or ranks.
struct Search {
  std::vector<double> proposed;
  std::vector<double> results;
  bool right_view = true;
  std::optional<double> propose(std::span<const pattern::FarmOutcome<double>> seen, int lag) {
    const auto i = static_cast<std::int64_t>(proposed.size());
    if (i == 60) return std::nullopt;
    right_view = right_view &&
                 static_cast<std::int64_t>(seen.size()) == std::max<std::int64_t>(0, i - lag + 1);
    double next = 0.1 * static_cast<double>(i);
    for (const auto& outcome : seen) next = 0.7 * next + *outcome.value;
    proposed.push_back(next);
    return next;
  }
  static double evaluate(double x) {
    if (x > 1) std::this_thread::yield();
    return x * (1 - x) / (1 + x * x);
  }
  void take(const pattern::FarmOutcome<double>& outcome) { results.push_back(*outcome.value); }
};

TEST_CASE("a source that sees results proposes the same on threads and on any ranks") {
  for (const int lag : {1, 2, 7}) {
    Search expected;
    pattern::farm(
        {.workers = 2, .lag = lag},
        [&](std::span<const pattern::FarmOutcome<double>> seen) {
          return expected.propose(seen, lag);
        },
        [](double x) { return Search::evaluate(x); },
        [&](std::int64_t, pattern::FarmOutcome<double>&& outcome) { expected.take(outcome); });
    REQUIRE(expected.proposed.size() == 60);
    for (const int ranks : {1, 2, 3, 4, 9}) {
      Search search;
      run_threads(ranks, [&](ThreadTransport& transport) {
        pattern::farm(
            transport, {.lag = lag, .prefetch = ranks % 2 + 1},
            [&](std::span<const pattern::FarmOutcome<double>> seen) {
              return search.propose(seen, lag);
            },
            [](double x) { return Search::evaluate(x); },
            [&](std::int64_t, pattern::FarmOutcome<double>&& outcome) { search.take(outcome); });
      });
      CAPTURE(lag, ranks);
      CHECK(search.right_view);
      CHECK(search.proposed == expected.proposed);  // bit for bit: no tolerance
      CHECK(search.results == expected.results);
    }
  }
}

TEST_CASE("a silent rank's items go to others, and its late answers are dropped") {
  std::vector<int> delivered;
  std::vector<pattern::FarmReport> reports(3);
  std::atomic<int> begun{0};
  int next = 0;
  run_threads(3, [&](ThreadTransport& transport) {
    reports[+transport.rank()] = pattern::farm(
        transport, {.lease = 0.03, .prefetch = 2},
        [&] { return next < 20 ? std::optional<int>(next++) : std::nullopt; },
        [&](int item) {
          // The first attempt at item 2 takes longer than its lease; behind it waits another item.
          if (item == 2 && begun++ == 0) {
            std::this_thread::sleep_for(std::chrono::milliseconds(200));
            return -1;
          }
          std::this_thread::sleep_for(std::chrono::milliseconds(1));
          return item;
        },
        [&](std::int64_t, pattern::FarmOutcome<int>&& outcome) {
          delivered.push_back(*outcome.value);
        });
  });
  std::vector<int> expected(20);
  for (int i = 0; i < 20; ++i) expected[static_cast<std::size_t>(i)] = i;
  CHECK(delivered == expected);
  for (const pattern::FarmReport& report : reports) {
    CHECK(report.late >= 1);
    CHECK(report.attempts == 20 + report.late);
  }
}

TEST_CASE("random slow and throwing workers lose nothing and give nothing twice") {
  for (std::uint64_t seed = 0; seed < test::cases(12, 300); ++seed) {
    const Random random(seed, "troubles");
    constexpr int count = 80;
    std::vector<int> times(count, 0);
    std::vector<std::int64_t> wrong;
    int next = 0;
    const int ranks = 2 + static_cast<int>(seed % 4);
    run_threads(ranks, [&](ThreadTransport& transport) {
      pattern::farm(
          transport,
          {.attempts = 4,
           .backoff = 1e-4,
           .in_flight = 3 + static_cast<int>(seed % 5),
           .ordered = seed % 2 == 0,
           .lease = 0.004,
           .prefetch = 1 + static_cast<int>(seed % 3)},
          [&] { return next < count ? std::optional<int>(next++) : std::nullopt; },
          [&](int item, const pattern::FarmTask& task) {
            const double trouble =
                random.uniform(static_cast<std::uint64_t>(8 * item + task.attempt));
            if (trouble < 0.05) std::this_thread::sleep_for(std::chrono::milliseconds(8));
            if (trouble > 0.8) throw std::runtime_error("trouble");
            return item;
          },
          [&](std::int64_t number, pattern::FarmOutcome<int>&& outcome) {
            ++times[static_cast<std::size_t>(number)];
            const bool all_fail = [&] {
              for (int a = 1; a <= 4; ++a)
                if (random.uniform(static_cast<std::uint64_t>(8 * number + a)) <= 0.8) return false;
              return true;
            }();
            if (outcome.value ? *outcome.value != number : !all_fail) wrong.push_back(number);
          });
    });
    CAPTURE(seed, ranks);
    CHECK(times == std::vector<int>(count, 1));
    CHECK(wrong.empty());
  }
}

TEST_CASE("an exception of the source or the sink is told to all ranks") {
  for (const bool in_sink : {true, false})
    for (const int ranks : {1, 2, 4}) {
      std::vector<std::string> errors(static_cast<std::size_t>(ranks));
      int given = 0;
      const std::string error = test::message_of<std::runtime_error>([&] {
        run_threads(ranks, [&](ThreadTransport& transport) {
          try {
            pattern::farm(
                transport, {.prefetch = 2},
                [&]() -> std::optional<Words> {
                  if (++given == 20 && !in_sink) throw std::runtime_error("it broke");
                  return Words(10, std::string(100, 'x'));
                },
                [](const Words& item) { return item; },
                [&](std::int64_t number, pattern::FarmOutcome<Words>&&) {
                  if (number == 9 && in_sink) throw std::runtime_error("it broke");
                });
          } catch (const std::exception& caught) {
            errors[+transport.rank()] = caught.what();
            throw;
          }
        });
      });
      CAPTURE(in_sink, ranks);
      CHECK(error == "it broke");
      CHECK(errors[0] == "it broke");
      for (std::size_t r = 1; r < errors.size(); ++r)
        CHECK_THAT(errors[r],
                   ContainsSubstring("rank 0 failed at its farm") && ContainsSubstring("it broke"));
    }
}

/// The errors of all ranks of an empty farm with the options `of(rank)`.
template <class Of>
std::vector<std::string> errors_of(int ranks, Of&& of) {
  std::vector<std::string> errors(static_cast<std::size_t>(ranks));
  run_threads(ranks, [&](ThreadTransport& transport) {
    try {
      pattern::farm(
          transport, of(transport.rank().value), [] { return std::optional<int>(); },
          [](int i) { return i; }, [](std::int64_t, pattern::FarmOutcome<int>&&) {});
    } catch (const contract_error& error) {
      errors[+transport.rank()] = error.what();
    }
  });
  return errors;
}

TEST_CASE("wrong and unequal options are rejected on every rank") {
  const auto check = [](auto&& of, const char* expected) {
    for (const std::string& error : errors_of(3, of))
      CHECK_THAT(error, ContainsSubstring(expected));
  };
  check([](unsigned) { return pattern::FarmOptions{.attempts = 0}; },
        "attempts must be at least 1");
  check([](unsigned) { return pattern::FarmOptions{.prefetch = 0}; },
        "prefetch must be at least 1");
  check([](unsigned) { return pattern::FarmOptions{.ordered = false, .lag = 2}; }, "lag = 2");
  check([](unsigned) { return pattern::FarmOptions{.lease = -1}; }, "lease must be finite");
  check([](unsigned rank) { return pattern::FarmOptions{.attempts = rank == 2 ? 5 : 4}; },
        "rank 0 has attempts = 4, rank 2 has attempts = 5");
  check(
      [](unsigned rank) {
        return pattern::FarmOptions{.backoff = rank == 1 ? 0.01 : 0.01 + 1e-12};
      },
      "rank 0 has backoff = 0.010000000001, rank 1 has backoff = 0.01");
  check([](unsigned rank) { return pattern::FarmOptions{.journal = rank == 0 ? "a" : ""}; },
        "rank 0 has journal = a, rank 1 has journal = ");
}

TEST_CASE("a farm inside a farm on the same ranks is a failed attempt") {
  for (const int ranks : {1, 2}) {
    std::vector<std::string> errors;
    run_threads(ranks, [&](ThreadTransport& transport) {
      const std::vector<int> items{1, 2};
      const auto outcomes = pattern::farm(transport, {}, items, [&](int) {
        return pattern::farm(transport, {}, items, [](int i) { return i; }).size();
      });
      for (const auto& outcome : outcomes) errors.push_back(outcome.error);
    });
    REQUIRE(errors.size() == 2);
    for (const std::string& error : errors)
      CHECK_THAT(error, ContainsSubstring("inside a farm on the same ranks"));
  }
}

TEST_CASE("the trail of a farm is priced within 1 %, and its head is no worker") {
  const auto check = [](const Trail& trail, int workers, std::int64_t attempts) {
    const Timeline timeline = trail.timeline("farm");
    Timeline again;
    simulate(timeline.schedule(), TimelineCosts(timeline), again);
    CAPTURE(workers, timeline.makespan(), again.makespan());
    CHECK(timeline.schedule().ranks() == workers);
    CHECK(trail.events().size() == static_cast<std::size_t>(attempts));
    CHECK(std::abs(again.makespan() - timeline.makespan()) <= 0.01 * timeline.makespan());
    // Every attempt took at least 1 ms of its worker's time.
    Seconds busy = 0;
    for (const Seconds each : timeline.busy()) busy += each;
    CHECK(busy >= 1e-3 * static_cast<double>(attempts));
    CHECK(timeline.bubble_ratio() >= 0);
  };
  const auto wait = [](double item) {
    std::this_thread::sleep_for(std::chrono::duration<double>(1e-3 * (1 + std::fmod(item, 3))));
    return item;
  };
  for (const int lag : {0, 2}) {
    int next = 0;
    const auto source = [&](std::span<const pattern::FarmOutcome<double>>) {
      return next < 30 ? std::optional<double>(next++) : std::nullopt;
    };
    const auto sink = [](std::int64_t, pattern::FarmOutcome<double>&&) {};
    Trail threads;
    pattern::farm({.workers = 3, .lag = lag, .trail = &threads}, source, wait, sink);
    check(threads, 3, 30);
    next = 0;
    std::vector<Trail> ranks(4);
    run_threads(4, [&](ThreadTransport& transport) {
      pattern::farm(transport, {.lag = lag, .prefetch = 2, .trail = &ranks[+transport.rank()]},
                    source, wait, sink);
    });
    check(ranks[0], 3, 30);
    CHECK(ranks[1].events().empty());
    // With a lag of 2 at most two items are under way, so a third of the time is idle at least.
    if (lag == 2) CHECK(threads.timeline().bubble_ratio() > 0.3);
  }
}

}  // namespace test_rank_farm
