// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors

// Trails of a race, of fork_join(), of fixed_point() and of stream(), on threads and over ranks:
// each is priced as it ran, and is drawn and measured as any Schedule.

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <mutex>
#include <optional>
#include <set>
#include <stdexcept>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>

#include <heddle/core/error.hpp>
#include <heddle/core/index.hpp>
#include <heddle/core/units.hpp>
#include <heddle/execute/stream.hpp>
#include <heddle/execute/thread_transport.hpp>
#include <heddle/execute/timeline_costs.hpp>
#include <heddle/execute/trail.hpp>
#include <heddle/pattern/equations.hpp>
#include <heddle/pattern/fixed_point.hpp>
#include <heddle/pattern/fork_join.hpp>
#include <heddle/pattern/race.hpp>
#include <heddle/pattern/rank_fixed_point.hpp>
#include <heddle/pattern/rank_race.hpp>
#include <heddle/schedule/timeline.hpp>
#include <heddle/simulate/simulate.hpp>
#include <heddle/trace/grid.hpp>
#include <heddle/trace/impl/guests.hpp>
#include <heddle/trace/named_timeline.hpp>
#include <heddle/trace/perfetto.hpp>
#include <heddle/trace/report.hpp>
#include <heddle/trace/svg.hpp>

#include "support/complaint.hpp"

namespace test_trails {

using namespace heddle;
using Catch::Matchers::ContainsSubstring;

void wait(double milliseconds) {
  std::this_thread::sleep_for(std::chrono::duration<double, std::milli>(milliseconds));
}

std::size_t count_of(const std::string& text, const std::string& part) {
  std::size_t found = 0;
  for (std::size_t at = text.find(part); at != std::string::npos; at = text.find(part, at + 1))
    ++found;
  return found;
}

/// Checks what holds for every trail: its price with its own times, its busy time, its pictures.
void check(const Trail& trail, int workers) {
  const Timeline timeline = trail.timeline("a trail");
  CAPTURE(workers, timeline.makespan(), trail.events().size());
  CHECK(timeline.schedule().ranks() == workers);
  Timeline again;
  simulate(timeline.schedule(), TimelineCosts(timeline), again);
  CHECK(std::abs(again.makespan() - timeline.makespan()) <= 0.01 * timeline.makespan());
  // The bubble by hand.
  Seconds busy = 0;
  for (const Trail::Event& event : trail.events()) busy += event.end - event.start;
  const double bubble = 1 - busy / (timeline.makespan() * workers);
  CHECK(std::abs(trace::time_use(timeline).bubble_ratio() - bubble) < 1e-9);
  CHECK_THAT(trace::to_string(trace::bubble_report(again, timeline)), ContainsSubstring("a trail"));
  // A wait for another worker is drawn on the worker's own row only.
  for (std::size_t i = 0; i < timeline.schedule().size(); ++i)
    CHECK(trace::impl::guests(timeline.schedule(), ActionId{i}).empty());
  // A line for each worker, a box for each event, and a slice for each.
  CHECK(count_of(to_grid(timeline), "rank ") == static_cast<std::size_t>(workers));
  CHECK_THAT(trace::to_svg(timeline), ContainsSubstring("</svg>"));
  const std::vector<trace::NamedTimeline> named{{"a trail", timeline}};
  CHECK(count_of(trace::to_perfetto(named), "\"cat\":\"USER\"") == trail.events().size());
}

TEST_CASE("the trail of a race has its walkers, of which the winner ends first") {
  // Walker 2 needs 2 ms, the others stop when they see it.
  const auto search = [](pattern::Walker& walker) -> std::optional<int> {
    for (int step = 0; step < 200 && !walker.stop_requested(); ++step) {
      wait(1);
      walker.work();
      if (walker.number() == 2 && step == 1) return 7;
    }
    return std::nullopt;
  };
  Trail threads;
  CHECK(pattern::race({.walkers = 3, .trail = &threads}, search).value == 7);
  REQUIRE(threads.events().size() >= 1);
  check(threads, 3);
  for (const Trail::Event& event : threads.events())
    if (event.item == 2) CHECK(event.end - event.start >= 2e-3);

  std::vector<Trail> ranks(3);
  run_threads(3, [&](ThreadTransport& transport) {
    static_cast<void>(pattern::race(transport, {.trail = &ranks[+transport.rank()]}, search));
  });
  for (const Trail& trail : ranks) {
    REQUIRE(trail.events().size() == 3);
    check(trail, 3);
    for (std::size_t r = 0; r < 3; ++r) CHECK(trail.events()[r].worker == Worker{r});
  }

  // Two threads for three walkers that all give up: one thread has two of them, one after another.
  Trail few;
  const auto give_up = [](pattern::Walker&) -> std::optional<int> {
    wait(1);
    return std::nullopt;
  };
  CHECK_FALSE(pattern::race({.walkers = 3, .threads = 2, .trail = &few}, give_up).value);
  CHECK(few.events().size() == 3);
  check(few, 2);
}

TEST_CASE("the trail of a fork-join has a piece for each path, and one more for each fork") {
  const auto program = [](pattern::Fork& fork) {
    wait(1);
    const int sum = fork.map(
        std::vector<int>{1, 2, 3},
        [](pattern::Fork& inner, int path) {
          wait(2 * path);
          if (path != 2) return path;
          return inner.map(
              std::vector<int>{10, 20},
              [](pattern::Fork&, int step) {
                wait(2);
                return step;
              },
              [](const std::vector<int>& steps) {
                wait(1);
                return steps[0] + steps[1];
              });
        },
        [](const std::vector<int>& paths) { return paths[0] + paths[1] + paths[2]; });
    wait(1);
    return sum;
  };
  for (const int threads : {1, 2, 4}) {
    Trail trail;
    CHECK(pattern::fork_join({.threads = threads, .trail = &trail}, program) == 34);
    check(trail, threads);
    // The program, its three paths and their two, and a second piece where something forks.
    CHECK(trail.events().size() == 1 + 5 + 2);
    Seconds busy = 0;
    std::set<std::int64_t> items;
    for (const Trail::Event& event : trail.events()) {
      busy += event.end - event.start;
      items.insert(event.item);
    }
    CHECK(busy >= 19e-3);  // 1 + 2 + 4 + 6 + 2 + 2 + 1 + 1 ms of waits
    CHECK(items == std::set<std::int64_t>{0, 1, 2, 3, 4, 5});
  }
}

TEST_CASE("the trail of fixed_point() has each sweep, and no sweep begins before the last ends") {
  // Each value is the one before it and 1, so value i is final after sweep i + 1.
  const Equations equations(6, 0, [](int i, const pattern::ValuesBefore<int>& before) {
    wait(0.5);
    return i == 0 ? 1 : before[i - 1] + 1;
  });
  const auto check_sweeps = [](const Trail& trail, int sweeps, int evaluations) {
    check(trail, 2);
    std::vector<Seconds> first(static_cast<std::size_t>(sweeps), 1e300);
    std::vector<Seconds> last(static_cast<std::size_t>(sweeps), 0);
    Seconds busy = 0;
    for (const Trail::Event& event : trail.events()) {
      const auto sweep = static_cast<std::size_t>(event.item);
      REQUIRE(sweep < first.size());
      first[sweep] = std::min(first[sweep], event.start);
      last[sweep] = std::max(last[sweep], event.end);
      busy += event.end - event.start;
    }
    for (std::size_t s = 1; s < first.size(); ++s) CHECK(first[s] >= last[s - 1]);
    CHECK(busy >= 0.5e-3 * evaluations);
    // Priced anew with twice the time and no idle time, each sweep still waits for the one before.
    const Timeline timeline = trail.timeline();
    struct Doubled : TimelineCosts {
      using TimelineCosts::TimelineCosts;
      [[nodiscard]] Seconds time(const Schedule& schedule, ActionId id) const {
        return schedule[id].kind == Kind::user ? 2 * TimelineCosts::time(schedule, id) : 0;
      }
    };
    Timeline doubled;
    simulate(timeline.schedule(), Doubled(timeline), doubled);
    Seconds longest = 0;
    for (int s = 0; s < sweeps; ++s) {
      Seconds most = 0, sum = 0, first_end = 1e300, last_start = 0;
      for (const Trail::Event& event : trail.events())
        if (event.item == s) {
          most = std::max(most, event.end - event.start);
          sum += event.end - event.start;
          first_end = std::min(first_end, event.end);
          last_start = std::max(last_start, event.start);
        }
      // On a busy machine, a worker may begin its part when the other one has ended its part. Then
      // the trail says that the one follows the other.
      longest += 2 * (first_end <= last_start ? sum : most);
    }
    CHECK(doubled.makespan() <= longest + 1e-9);
    CHECK(doubled.makespan() >= longest / 2);
  };
  Trail threads;
  const auto solved = pattern::fixed_point(equations, {.threads = 2, .trail = &threads});
  CHECK(solved.values.back() == 6);
  check_sweeps(threads, solved.sweeps, static_cast<int>(solved.evaluations));

  std::vector<Trail> ranks(2);
  run_threads(2, [&](ThreadTransport& transport) {
    static_cast<void>(
        pattern::fixed_point(transport, equations, {.trail = &ranks[+transport.rank()]}));
  });
  for (const Trail& trail : ranks)
    check_sweeps(trail, solved.sweeps, static_cast<int>(solved.evaluations));

  // Ranks that differ in this are told so.
  run_threads(2, [&](ThreadTransport& transport) {
    Trail mine;
    const std::string said = test::message_of<contract_error>([&] {
      static_cast<void>(pattern::fixed_point(
          transport, equations, {.trail = transport.rank() == Rank{0} ? &mine : nullptr}));
    });
    if (said.find("trail") == std::string::npos) throw std::runtime_error(said);
  });
}

TEST_CASE("the trail of a stream has every stage of every batch once") {
  for (const int threads : {1, 2}) {
    int next = 0;
    std::uint64_t sum = 0;
    Trail trail;
    const std::uint64_t tokens = stream(
        {.threads = threads, .batch = 4, .trail = &trail},
        [&]() -> std::optional<int> {
          return next < 200 ? std::optional<int>(next++) : std::nullopt;
        },
        [](int token) {
          wait(0.1);
          return token;
        },
        [&](int token) {
          wait(0.1);
          sum += static_cast<std::uint64_t>(token);
        });
    CHECK(tokens == 200);
    CHECK(sum == 199 * 100);
    REQUIRE_FALSE(trail.events().empty());
    check(trail, threads);
    std::set<std::pair<std::int64_t, std::uint32_t>> seen;  // batches that all threads took
    bool once = true;
    Seconds busy = 0;
    for (const Trail::Event& event : trail.events()) {
      if (event.worker != Worker{0} || event.stage != Stage{0})
        once = seen.insert({event.item, event.stage.value}).second && once;
      busy += event.end - event.start;
    }
    CHECK(once);
    // Each token took at least 0.2 ms of a thread.
    CHECK(busy >= 200 * 0.2e-3);
    // With two threads some stages were taken batch by batch, in which stage 1 follows the source.
    for (const auto& [batch, stage] : seen)
      if (stage == 2) CHECK(seen.count({batch, 1}) == 1);
    if (threads == 2) CHECK_FALSE(seen.empty());
  }
}

}  // namespace test_trails
