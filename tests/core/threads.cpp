// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
// program: its own
// timeout: 60

// Every call that starts threads, on a system that does not start all of them: either the call
// throws before any work, or the threads that have started do all of it.

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <numeric>
#include <optional>
#include <string>
#include <system_error>
#include <thread>
#include <utility>
#include <vector>

#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>

#include <heddle/core.hpp>
#include <heddle/device/core_group/emulated.hpp>
#include <heddle/execute/stream.hpp>
#include <heddle/execute/thread_mover.hpp>
#include <heddle/execute/thread_transport.hpp>
#include <heddle/pattern.hpp>
#include <heddle/plan/speed_ratios.hpp>

#include "support/failing_threads.hpp"

namespace test_threads {

using namespace heddle;
using Catch::Matchers::ContainsSubstring;

/// The work that a call has begun.
std::atomic<int> work{0};

struct Door {
  const char* where;          ///< the name of the call in its error
  int others;                 ///< threads beside the calling one
  int all;                    ///< the work of the whole call
  bool throws;                ///< if not all threads start
  std::function<int()> call;  ///< returns the work of which it has the results
};

int run_fork_join() {
  // The paths wait for each other, so that fewer threads than asked for would hang.
  const auto meet = [](pattern::Fork&, int) {
    for (++work; work < 8;) std::this_thread::yield();
    return 1;
  };
  return pattern::fork_join({.threads = 8}, [&](pattern::Fork& fork) {
    return fork.map(std::vector<int>(8), meet, [](const std::vector<int>& each) {
      return std::accumulate(each.begin(), each.end(), 0);
    });
  });
}

int run_fixed_point() {
  const auto one = [](int, const pattern::ValuesBefore<int>&) {
    ++work;
    return 1;
  };
  const auto solved = pattern::fixed_point(Equations(8, 0, one), {.threads = 8});
  return static_cast<int>(solved.evaluations);
}

int run_race() {
  // All searches but the last one end only when they are beaten.
  const auto found =
      pattern::race({.walkers = 8}, [](pattern::Walker& walker) -> std::optional<int> {
        ++work;
        if (walker.number() == 7) {
          while (work < 8) std::this_thread::yield();
          return 8;
        }
        while (!walker.stop_requested()) std::this_thread::yield();
        return std::nullopt;
      });
  return found.value.value_or(0);
}

int run_farm() {
  const std::vector<int> items(1'000, 1);
  int done = 0;
  const auto outcomes =
      pattern::farm({.workers = 8}, items, [](int item) { return work += item, item; });
  for (const auto& outcome : outcomes) done += outcome.value.value_or(0);
  return done;
}

int run_balance() {
  plan::SpeedRatios ratios(8);
  const pattern::BalancedRound round = pattern::balance(
      ratios, 1'000,
      [](Worker, const plan::ItemRange& range) { work += static_cast<int>(range.size()); });
  std::int64_t done = 0;
  for (const plan::ItemRange& range : round.ranges) done += range.size();
  return static_cast<int>(done);
}

int run_ranks() {
  run_threads(8, [](ThreadTransport& transport) {
    ++work;
    std::byte mine{}, other{};
    const int next = (static_cast<int>(+transport.rank()) + 1) % 8;
    const int last = (static_cast<int>(+transport.rank()) + 7) % 8;
    auto received = transport.receive(Rank{last}, Lane{0}, &other, 1);
    auto sent = transport.send(Rank{next}, Lane{0}, &mine, 1);
    while (!transport.test(received) || !transport.test(sent)) std::this_thread::yield();
  });
  return work;
}

int run_stream() {
  // Heavy enough for all threads that there are.
  int next = 0, passed = 0;
  const auto source = [&] { return next < 400 ? std::optional(next++) : std::nullopt; };
  const auto heavy = [](int token) {
    volatile double x = 1;
    for (int i = 0; i < 10'000; ++i) x = x * 1.0000001;
    ++work;
    return token;
  };
  const auto made = stream({.threads = 8, .batch = 1}, source, parallel(heavy),
                           [&](int token) { passed += token == passed ? 1 : 0; });
  return std::min(passed, static_cast<int>(made));
}

int run_mover() {
  ThreadMover mover;
  ++work;
  return 1;
}

struct Cores {
  std::atomic<int>* calls;
  void operator()(emulated::Core&) const {
    volatile double x = 1;
    for (int i = 0; i < 10'000; ++i) x = x * 1.0000001;
    ++*calls;
  }
};

int run_core_group() {
  emulated::CoreGroup group({.host_threads = 8});
  group.launch("cores", Cores{&work});
  return work;
}

std::vector<Door> doors() {
  return {{"heddle::pattern::fork_join", 7, 8, true, run_fork_join},
          {"heddle::pattern::fixed_point", 7, 15, true, run_fixed_point},
          {"heddle::pattern::race", 7, 8, true, run_race},
          {"heddle::pattern::farm", 7, 1'000, true, run_farm},
          {"heddle::pattern::balance", 7, 1'000, true, run_balance},
          {"heddle::run_threads", 8, 8, true, run_ranks},
          {"heddle::ThreadMover", 1, 1, true, run_mover},
          {"heddle::stream", 7, 400, false, run_stream},
          {"heddle::CoreGroup", 7, CoreGrid::cores, false, run_core_group}};
}

TEST_CASE("a call whose threads do not all start throws before any work, or does all of it") {
  for (const Door& door : doors())
    for (const int started : {0, 1, 2, 5, 6}) {
      if (started >= door.others) continue;
      INFO(door.where << " with " << started << " of " << door.others << " threads");
      work = 0;
      int done = 0;
      std::string said;
      {
        const test::ThreadLimit limit(started);
        try {
          done = door.call();
        } catch (const std::system_error& error) {
          said = error.what();
          CHECK(error.code() == std::errc::resource_unavailable_try_again);
        }
      }
      CHECK(work == (door.throws ? 0 : door.all));
      CHECK(done == (door.throws ? 0 : door.all));
      if (!door.throws) continue;
      CHECK_THAT(said, ContainsSubstring(text(door.where, ": ")) &&
                           ContainsSubstring(text("expected ", door.others,
                                                  " beside the calling one, got ", started)) &&
                           ContainsSubstring("use fewer threads"));
    }
}

TEST_CASE("the same calls do all their work if the threads start") {
  for (const Door& door : doors()) {
    INFO(door.where);
    work = 0;
    const test::ThreadLimit limit(door.where == std::string("heddle::stream") ? -1 : door.others);
    CHECK(door.call() == door.all);
    CHECK(work == door.all);
  }
}

TEST_CASE("a balance that cannot start leaves the ratios as they were") {
  plan::SpeedRatios ratios(4);
  const auto before = ratios.split(1'000);
  const test::ThreadLimit limit(1);
  CHECK_THROWS_AS(pattern::balance(ratios, 1'000, [](Worker, const plan::ItemRange&) {}),
                  std::system_error);
  CHECK(ratios.split(1'000) == before);
}

}  // namespace test_threads
