// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors

// alone: yes
// The step of a generation over threads: tokens go back to the first stage in time for the next
// step, and as many groups as stages keep all stages busy.

#include <algorithm>
#include <array>
#include <chrono>
#include <cstdint>
#include <cstring>
#include <string>
#include <thread>
#include <vector>

#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>

#include <heddle/core/text.hpp>
#include <heddle/execute/clock.hpp>
#include <heddle/execute/runner.hpp>
#include <heddle/execute/thread_transport.hpp>
#include <heddle/schedule/builder.hpp>

#include "../../examples/common/gpt_generation_schedule.hpp"
#include "support/rounds.hpp"

namespace test_generation_waits {

using namespace heddle;
using examples::generation_schedule;

namespace {

std::uint64_t number_at(const std::byte* data) {
  std::uint64_t value = 0;
  std::memcpy(&value, data, sizeof(value));
  return value;
}

/// What a stage makes of a number.
std::uint64_t next(std::uint64_t value, std::uint64_t stage, std::uint64_t group) {
  return value * 6364136223846793005u + 10 * stage + group + 1;
}

/// The seconds of some steps over threads, with a wait for every group below `active`.
Seconds time_of(int stages, int groups, std::uint32_t active, int steps, double wait) {
  const Schedule schedule =
      generation_schedule({.stages = stages, .groups = groups, .activation = 8, .tokens = 8});
  std::vector<Seconds> begin(static_cast<std::size_t>(stages)), end(begin);
  run_threads(stages, [&](ThreadTransport& transport) {
    Runner run(
        [&](const Task& task) {
          if (+task.item() < active)
            std::this_thread::sleep_for(std::chrono::duration<double>(wait));
        },
        schedule, transport, {.execute = {.idle = Idle::nap}});
    begin[+transport.rank()] = steady_seconds();
    for (int step = 0; step < steps; ++step) run.step();
    run.drain();
    end[+transport.rank()] = steady_seconds();
  });
  return *std::ranges::max_element(end) - *std::ranges::min_element(begin);
}

}  // namespace

TEST_CASE("every group's tokens reach the first stage before its next step") {
  for (int stages = 1; stages <= 4; ++stages)
    for (int groups = 1; groups <= 5; ++groups) {
      INFO(stages << " stages, " << groups << " groups");
      constexpr int steps = 7;
      const Schedule schedule =
          generation_schedule({.stages = stages, .groups = groups, .activation = 24, .tokens = 8});
      std::vector<std::uint64_t> drawn(static_cast<std::size_t>(groups));
      run_threads(stages, [&](ThreadTransport& transport) {
        Runner run(
            [&](const Task& task) {
              const std::uint64_t value = next(number_at(task.uses().front().data),
                                               static_cast<std::uint64_t>(+task.stage()),
                                               static_cast<std::uint64_t>(+task.item()));
              std::memcpy(task.uses().back().data, &value, sizeof(value));
              if (+task.stage() + 1 == static_cast<std::uint32_t>(stages))
                drawn[+task.item()] = value;
            },
            schedule, transport);
        for (int step = 0; step < steps; ++step) run.step();
        run.drain();
      });
      std::vector<std::uint64_t> expected(drawn.size());
      for (std::uint64_t m = 0; m < expected.size(); ++m)
        for (int step = 0; step < steps; ++step)
          for (std::uint64_t s = 0; s < static_cast<std::uint64_t>(stages); ++s)
            expected[m] = next(expected[m], s, m);
      CHECK(drawn == expected);
    }
}

TEST_CASE("a step waits for the tokens of the same group only") {
  const Schedule schedule = generation_schedule({.stages = 3, .groups = 4});
  std::size_t found = 0;
  for (const heddle::impl::Carried& edge : schedule::impl::carried(schedule)) {
    const Action& waits = schedule[edge.action];
    const Action& on = schedule[ActionId{edge.on.action}];
    if (waits.kind != Kind::forward || +waits.stage != 0 || on.kind != Kind::move) continue;
    CHECK(on.item == waits.item);
    found += +on.stage == 2;  // the others free the storage of an output
  }
  CHECK(found == 4);
}

TEST_CASE("four groups on four stages give the tokens of almost four") {
  constexpr int steps = 20;
  constexpr double wait = 0.015;
  // A token of one group passes 4 stages, one after another.
  const Seconds one = 4 * steps * wait;
  std::array forms{test::Form{"one group, s", [&] { return time_of(4, 4, 1, steps, wait); }},
                   test::Form{"four groups, s", [&] { return time_of(4, 4, 4, steps, wait); }}};
  const test::Spread &alone = forms[0].spread, &four = forms[1].spread;
  const auto holds = [&] { return 4 * one / four.median() >= 3.4; };
  if (!test::measure_in_rounds(forms, holds)) SKIP(test::no_result);
  INFO("one group " << alone << ", four groups " << four);
  CHECK(alone.least() >= one);
  CHECK(four.least() >= one);
  CHECK(4 * one / four.median() >= 3.4);
}

TEST_CASE("a generation without stages or groups is rejected") {
  using Catch::Matchers::ContainsSubstring;
  CHECK_THROWS_WITH(generation_schedule({.stages = 0, .groups = 1}),
                    ContainsSubstring("0 stages, 1 groups"));
  CHECK_THROWS_WITH(generation_schedule({.stages = 2, .groups = 0}),
                    ContainsSubstring("needs a stage and a group"));
}

}  // namespace test_generation_waits
