// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors

// Four ranks (threads) that wait instead of computing. One of them turns half as fast and recovers:
// the Replanner gives it fewer layers and then its layers back. Where nothing can be gained, looks
// cost next to nothing.
// alone: yes

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <iostream>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>

#include <heddle/core.hpp>
#include <heddle/core/text.hpp>
#include <heddle/execute.hpp>
#include <heddle/execute/replanner.hpp>
#include <heddle/machine.hpp>
#include <heddle/plan.hpp>
#include <heddle/schedule.hpp>
#include <heddle/simulate.hpp>

#include "support/complaint.hpp"
#include "support/rounds.hpp"

namespace test_replan_waits {

using namespace heddle;
using Catch::Matchers::ContainsSubstring;

namespace {

constexpr int layers = 12;
/// The forward of three layers. Delays of a busy machine (a few ms) do not hide a slow rank then.
constexpr Seconds unit = 6e-3;

Profile waits(Seconds of_three = unit) {
  Profile profile{.model = "waits", .input = 4, .layers = {}, .reference = "gpu"};
  profile.layers.assign(
      layers, {.name = "layer",
               .output = 4,
               .saved = 4,
               .parameters = 4000,
               .measured = {{"gpu", 1, 1, {of_three / 3, of_three / 3, of_three / 3, 0}}}});
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
  Profile profile = waits();
  double slowness = 1;
  int plans = 0;
  std::vector<plan::RankCosts> costs = {};
  Seconds late = 0;

  void begin_plan(const Plan& plan) {
    costs.assign(1, plan::costs(plan, profile, four()));
    ++plans;
  }
  void operator()(const Task& task) {
    const Seconds wait = slowness * costs[0].time(task.schedule(), task.id());
    if (wait == 0) return;
    // The next wait is shorter by as much as this one wakes up late, so that the sum is right.
    const Seconds due = steady_seconds() + std::max(wait - late, wait / 2);
    std::this_thread::sleep_for(std::chrono::duration<double>(due - steady_seconds()));
    late = steady_seconds() - due;
  }
};

/// The numbers of layers of a plan.
std::vector<int> counts(const Plan& plan) {
  std::vector<int> result;
  for (const PlanStage& stage : plan.stages) result.push_back(stage.layers.size());
  return result;
}

}  // namespace

namespace {

constexpr int every = 2, slow_from = 4, slow_to = 12, steps = 18;

/// What a run has shown.
struct Outcome {
  /// By rank: the step before which the plan changed, and its numbers of layers.
  std::array<std::vector<std::pair<int, std::vector<int>>>, 4> changes;
  std::array<std::string, 4> faults;  ///< at the end of the slow steps
  int plans = 0;                      ///< that all models were told
  /// The seconds of the steps with the slow rank, before and after the plan has changed.
  test::Spread before, after;

  /// Whether the plan changes once each way, with the second look at the slow rank.
  [[nodiscard]] bool as_simulated() const {
    return changes[0].size() == 2 && changes[0][0].first <= slow_from + 2 * every &&
           changes[0][0].second == std::vector{4, 4, 1, 3} &&
           changes[0][1].first <= slow_to + 2 * every &&
           changes[0][1].second == std::vector{3, 3, 3, 3};
  }
};

Outcome run_once(int microbatches) {
  Outcome seen;
  std::atomic<int> plans = 0;
  run_threads(4, [&](ThreadTransport& transport) {
    const std::size_t me = +transport.rank();
    Waits model;
    Replanner run(model, choice_of(microbatches), transport,
                  {.run = {.execute = {.idle = Idle::nap}}, .every = every, .steps = steps});
    for (int step = 0; step < steps; ++step) {
      const bool slow = step >= slow_from && step < slow_to;
      model.slowness = slow && me == 2 ? 2 : 1;
      if (run.look()) seen.changes[me].emplace_back(step, counts(run.plan()));
      (void)all_gather(transport, {});
      const Seconds start = steady_seconds();
      run.step();
      (void)all_gather(transport, {});
      const Seconds took = steady_seconds() - start;
      if (me == 0 && slow) (seen.changes[0].empty() ? seen.before : seen.after).add(took, true);
      if (step == slow_to - 1) seen.faults[me] = run.fault().value_or("none");
    }
    plans += model.plans;
  });
  seen.plans = plans;
  return seen;
}

}  // namespace

TEST_CASE("a rank that turns slow loses layers and gets them back") {
  for (const auto& [microbatches, least] : {std::pair{8, 1.25}, std::pair{16, 1.3}}) {
    CAPTURE(microbatches);
    const Outcome seen = run_once(microbatches);
    for (const auto& changes : seen.changes) REQUIRE(changes == seen.changes[0]);
    for (const std::string& fault : seen.faults) REQUIRE(fault == seen.faults[0]);
    REQUIRE(seen.plans == 4 * (1 + static_cast<int>(seen.changes[0].size())));
    // The steps are few, and other programs make a step longer: the least ones are compared.
    const double gain = seen.before.least() / seen.after.least();
    std::cout << "replan, " << microbatches
              << " microbatches: steps before the change, s: " << seen.before
              << "; after it: " << seen.after << '\n';
    CAPTURE(gain, seen.changes[0]);
    CHECK(seen.as_simulated());
    CHECK_THAT(seen.faults[0], ContainsSubstring("rank 2 computes"));
    CHECK(gain >= least);
  }
}

namespace {

/// Waits, and counts the sums of gradients.
struct Summing : Waits {
  int sums = 0;

  void operator()(const Task& task) {
    if (task.kind() == Kind::combine) ++sums;
    Waits::operator()(task);
  }
};

}  // namespace

TEST_CASE("a pipeline becomes two stages of two unequal ranks while a rank is slow") {
  // Samples of a microbatch: 8. Rank 1 has one of them in the second plan, which is slower than the
  // first one if all ranks are equally fast.
  const Plan line{.stages = {{{0, 3}, {Rank{0}}, {8}},
                             {{3, 6}, {Rank{1}}, {8}},
                             {{6, 9}, {Rank{2}}, {8}},
                             {{9, 12}, {Rank{3}}, {8}}},
                  .microbatches = 4};
  const Plan replicas{
      .stages = {{{0, 6}, {Rank{3}, Rank{1}}, {7, 1}}, {{6, 12}, {Rank{0}, Rank{2}}, {7, 1}}},
      .microbatches = 4};
  plan::PlanChoiceOptions options{.search = {.batch = 32, .microbatches = {4}}};
  options.monitor.least = 3;
  options.candidates = plan::fixed_plans({line, replicas});
  std::array<std::vector<Plan>, 4> taken;
  std::array<std::array<int, 2>, 4> sums{};  // by rank: of gradients, by each plan
  run_threads(4, [&](ThreadTransport& transport) {
    const std::size_t me = +transport.rank();
    Summing model;
    model.profile = waits(unit / 8);
    Replanner run(model, plan::PlanChoice(model.profile, four(), options), transport,
                  {.run = {.execute = {.idle = Idle::nap}}, .every = 2, .steps = 1000});
    for (int step = 0; step < 20; ++step) {
      model.slowness = me == 1 && step >= 4 && step < 10 ? 6 : 1;
      if (run.look()) taken[me].push_back(run.plan());
      run.step();
      sums[me][run.plan() == line ? 0 : 1] += std::exchange(model.sums, 0);
    }
  });
  for (const auto& plans : taken) REQUIRE(plans == taken[0]);
  REQUIRE(taken[0].size() >= 2);
  CHECK(taken[0].front() == replicas);
  CHECK(taken[0].back() == line);
  for (const auto& [by_line, by_replicas] : sums) CHECK((by_line == 0 && by_replicas > 0));
}

TEST_CASE("where there is nothing to gain, a Replanner loses at most 1 % of the time") {
  // A look costs the recording of one step and the observation before the next one. The fastest of
  // each kind of step is compared with the fastest step of a Runner, because delays by other
  // programs only add time. Looks are closer to each other here, so that the test is short.
  constexpr int looks = 5, between = 3;
  const int usual = ReplannerOptions{}.every;
  test::Spread plain_steps, recorded_steps, observed_steps;
  int changes = 0;
  run_threads(4, [&](ThreadTransport& transport) {
    const bool first = transport.rank() == 0;
    const auto time_of = [&](auto& run, test::Spread& times) {
      (void)all_gather(transport, {});
      const Seconds start = steady_seconds();
      run.step();
      (void)all_gather(transport, {});
      if (first) times.add(steady_seconds() - start, true);
    };
    const RunOptions options{.execute = {.idle = Idle::nap}};
    Waits model, same;
    Replanner run(model, choice_of(8), transport, {.run = options, .every = between});
    same.begin_plan(run.plan());
    Runner reference(same, run.choice().schedule(), transport, options);
    for (int step = 0; step < looks * between + 1; ++step) {
      test::Spread between_looks;
      time_of(run, step % between == between - 1      ? recorded_steps
                   : step % between == 0 && step != 0 ? observed_steps
                                                      : between_looks);
      if (step % between == 0) time_of(reference, plain_steps);
    }
    if (first) changes = run.choice().changes();
  });
  std::cout << "replan, nothing to gain: steps of a Runner, s: " << plain_steps
            << "; recorded: " << recorded_steps << "; observed: " << observed_steps << '\n';
  const Seconds plain = plain_steps.least(), recorded = recorded_steps.least(),
                observed = observed_steps.least();
  const Seconds look = std::max(0.0, recorded - plain) + std::max(0.0, observed - plain);
  const double lost = look / (usual * plain);
  CAPTURE(plain, recorded, observed);
  CHECK(changes == 0);
  CHECK(lost <= 0.01);
  std::cout << "replan, nothing to gain: a look costs " << look * 1e3 << " ms, " << lost * 100
            << " % of " << usual << " steps of " << plain * 1e3 << " ms\n";
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
