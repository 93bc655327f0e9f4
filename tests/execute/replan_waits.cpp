// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors

// Four ranks (threads) that wait instead of computing. One of them turns half as fast and recovers:
// the Replanner gives it fewer layers and then its layers back.
// alone: yes

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <iostream>
#include <limits>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>

#include <heddle/core.hpp>
#include <heddle/core/text.hpp>
#include <heddle/execute.hpp>
#include <heddle/machine.hpp>
#include <heddle/plan.hpp>
#include <heddle/schedule.hpp>
#include <heddle/simulate.hpp>

#include "support/complaint.hpp"

namespace test_replan_waits {

using namespace heddle;
using Catch::Matchers::ContainsSubstring;

namespace {

constexpr int layers = 12;
/// The forward of three layers. The shortest wait is two thirds of it.
constexpr Seconds unit = 3e-3;

Profile waits() {
  Profile profile{.model = "waits", .input = 4, .layers = {}, .reference = "gpu"};
  profile.layers.assign(layers, {.name = "layer",
                                 .output = 4,
                                 .saved = 4,
                                 .parameters = 4000,
                                 .measured = {{"gpu", 1, 1, {unit / 3, unit / 3, unit / 3, 0}}}});
  return profile;
}

Machine four() {
  return Machine::from_links(std::vector<Device>(4, {.name = "gpu"}), std::vector<Link>(16));
}

plan::PlanChoice choice_of(int microbatches) {
  plan::PlanChoiceOptions options{
      .search = {.batch = microbatches, .microbatches = {microbatches}}};
  options.monitor.least = 1.5;  // a busy machine wakes threads late
  return {waits(), four(), options};
}

/// Waits as the profile says for the present plan, and longer on a slow rank.
struct Waits {
  double slowness = 1;
  int plans = 0;
  std::vector<plan::RankCosts> costs = {};
  Seconds due = 0;

  void begin_plan(const Plan& plan) {
    costs.assign(1, plan::costs(plan, waits(), four()));
    ++plans;
  }
  void operator()(const Task& task) {
    const Seconds wait = slowness * costs[0].time(task.schedule(), task.id());
    if (wait == 0) return;
    // A wait ends at a time that counts from the end of the wait before, so that late wake-ups do
    // not add up.
    const Seconds now = steady_seconds();
    due = (now - due < 2e-3 ? due : now) + wait;
    std::this_thread::sleep_for(std::chrono::duration<double>(due - now));
  }
};

/// The numbers of layers of a plan.
std::vector<int> counts(const Plan& plan) {
  std::vector<int> result;
  for (const PlanStage& stage : plan.stages) result.push_back(stage.layers.size());
  return result;
}

}  // namespace

TEST_CASE("a rank that turns slow loses layers and gets them back") {
  constexpr int every = 2, slow_from = 8, slow_to = 20, steps = 30;
  for (const auto& [microbatches, least] : {std::pair{8, 1.25}, std::pair{16, 1.3}}) {
    constexpr Seconds never = std::numeric_limits<Seconds>::infinity();
    Seconds before = never, after = never;  // the fastest steps with the slow rank
    std::array<std::vector<std::pair<int, std::vector<int>>>, 4> changes;
    std::array<std::string, 4> faults;
    std::atomic<int> plans = 0;
    run_threads(4, [&, microbatches = microbatches](ThreadTransport& transport) {
      const std::size_t me = +transport.rank();
      Waits model;
      Replanner run(model, choice_of(microbatches), transport,
                    {.run = {.execute = {.idle = Idle::nap}}, .every = every, .steps = steps});
      for (int step = 0; step < steps; ++step) {
        const bool slow = step >= slow_from && step < slow_to;
        model.slowness = slow && me == 2 ? 2 : 1;
        if (run.look()) changes[me].emplace_back(step, counts(run.plan()));
        (void)all_gather(transport, {});
        const Seconds start = steady_seconds();
        run.step();
        (void)all_gather(transport, {});
        const Seconds took = steady_seconds() - start;
        if (me == 0 && slow)
          (changes[0].empty() ? before : after) =
              std::min(changes[0].empty() ? before : after, took);
        if (step == slow_to - 1) faults[me] = run.fault().value_or("none");
      }
      plans += model.plans;
    });
    CAPTURE(microbatches, before, after);
    for (std::size_t r = 0; r < 4; ++r) {
      REQUIRE(changes[r].size() == 2);  // exactly one each way, the same on all ranks
      CHECK(changes[r] == changes[0]);
      CHECK_THAT(faults[r], ContainsSubstring("rank 2 computes"));
    }
    CHECK(plans == 4 * 3);
    CHECK(changes[0][0].first <= slow_from + 2 * every);
    CHECK(changes[0][0].second == std::vector{4, 4, 1, 3});
    CHECK(changes[0][1].first <= slow_to + 3 * every);
    CHECK(changes[0][1].second == std::vector{3, 3, 3, 3});
    CHECK(before / after >= least);
    std::cout << "replan, " << microbatches << " microbatches: a step takes " << before * 1e3
              << " ms before and " << after * 1e3 << " ms after the change, " << before / after
              << " times as fast\n";
  }
}

TEST_CASE("a Replanner rejects a machine of other ranks and no steps between looks") {
  std::array<std::string, 2> messages;
  run_threads(2, [&](ThreadTransport& transport) {
    Waits model;
    messages[+transport.rank()] =
        test::message_of<contract_error>([&] { Replanner(model, choice_of(8), transport); });
  });
  for (const std::string& message : messages)
    CHECK_THAT(message, ContainsSubstring("4 ranks, there are 2"));
  run_threads(4, [&](ThreadTransport& transport) {
    Waits model;
    const std::string message = test::message_of<contract_error>(
        [&] { Replanner(model, choice_of(8), transport, {.every = 0}); });
    if (+transport.rank() == 0) messages[0] = message;
  });
  CHECK_THAT(messages[0], ContainsSubstring("every = 0"));
}

}  // namespace test_replan_waits
