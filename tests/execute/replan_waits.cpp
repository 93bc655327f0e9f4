// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors

// Four ranks (threads) that wait instead of computing. One of them turns half as fast and recovers:
// the AdaptiveRunner gives it fewer layers and then its layers back. Where nothing can be gained,
// looks cost next to nothing.
// alone: yes

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <iostream>
#include <optional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include <catch2/catch_test_macros.hpp>
#include <catch2/generators/catch_generators.hpp>
#include <catch2/generators/catch_generators_range.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>

#include <heddle/core.hpp>
#include <heddle/core/text.hpp>
#include <heddle/execute.hpp>
#include <heddle/machine.hpp>
#include <heddle/plan.hpp>
#include <heddle/schedule.hpp>
#include <heddle/simulate.hpp>
#include <heddle/systems/planners.hpp>

#include "support/cases.hpp"
#include "support/complaint.hpp"
#include "support/rounds.hpp"
#include "support/sleep_noise.hpp"

namespace test_replan_waits {

using namespace heddle;
using Catch::Matchers::ContainsSubstring;

namespace {

constexpr int layers = 12;
/// The forward of three layers. Delays of a busy machine (a few ms) do not hide a slow rank then.
constexpr Seconds unit = 6e-3;
constexpr double least_factor = 1.5;  ///< a busy machine wakes threads late

plan::Profile waits(Seconds of_three = unit) {
  plan::Profile profile{.model = "waits", .input = 4, .layers = {}, .reference = "gpu"};
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
  plan::PlanChoiceOptions options{.search = {.batch = microbatches, .microbatches = {microbatches}},
                                  .planners = systems::planners()};
  options.monitor.least = least_factor;
  return {waits(), four(), options};
}

/// Waits as the profile says for the present plan, and longer on a slow rank.
struct Waits {
  plan::Profile profile = waits();
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

const ExecuteOptions nap{.idle = Idle::nap};

/// Runs one step, which begins and ends together on all ranks. Rank 0 adds its seconds to `took`,
/// if there is one, and returns whether no rank looks slow only because of other programs. A sleep
/// is late for this if its delay alone would make a forward look slow (decision 110).
bool timed_step(auto& run, ThreadTransport& transport, test::Spread* took) {
  const bool first = transport.rank() == Rank{0};
  std::optional<test::SleepNoise> noise, delays;
  if (first) {
    noise.emplace(test::late_sleep);
    delays.emplace((least_factor - 1) * unit);
  }
  (void)all_gather(transport, {}, nap);
  const Seconds start = steady_seconds();
  run.step();
  (void)all_gather(transport, {}, nap);
  const Seconds seconds = steady_seconds() - start;
  if (!first) return true;
  const bool quiet = noise->end().quiet();
  if (took != nullptr) took->add(seconds, quiet);
  return delays->end().quiet();
}

constexpr int every = 2, slow_from = 4, slow_to = 12, steps = 18;
const std::vector even{3, 3, 3, 3}, uneven{4, 4, 1, 3};  ///< the layers of the two plans

/// What a run has shown.
struct Outcome {
  /// By rank: the step before which the plan changed, and its numbers of layers.
  std::array<std::vector<std::pair<int, std::vector<int>>>, 4> changes;
  std::array<std::string, 4> faults;  ///< at the end of the slow steps
  int plans = 0;                      ///< that all models were told
  bool quiet = true;                  ///< whether the machine was quiet beside all looks

  /// Whether the plan changes once each way, with the second look at the slow rank.
  [[nodiscard]] bool as_simulated() const {
    return changes[0].size() == 2 && changes[0][0].first <= slow_from + 2 * every &&
           changes[0][0].second == uneven && changes[0][1].first <= slow_to + 2 * every &&
           changes[0][1].second == even;
  }
};

/// Adds the seconds of the steps with the slow rank to `before` or `after` the change of the plan.
Outcome run_once(int microbatches, test::Spread& before, test::Spread& after) {
  Outcome seen;
  std::atomic<int> plans = 0;
  run_threads(4, [&](ThreadTransport& transport) {
    const std::size_t me = +transport.rank();
    Waits model;
    AdaptiveRunner run(model, choice_of(microbatches), transport,
                       {.run = {.execute = nap}, .every = every, .steps = steps});
    for (int step = 0; step < steps; ++step) {
      const bool slow = step >= slow_from && step < slow_to;
      model.slowness = slow && me == 2 ? 2 : 1;
      if (run.look()) seen.changes[me].emplace_back(step, counts(run.plan()));
      const std::vector<int> now = counts(run.plan());
      test::Spread* const took = !slow           ? nullptr
                                 : now == even   ? &before
                                 : now == uneven ? &after
                                                 : nullptr;
      const bool quiet = timed_step(run, transport, took);
      if (me == 0 && step % every == every - 1) seen.quiet = seen.quiet && quiet;
      if (step == slow_to - 1) seen.faults[me] = run.fault().value_or("none");
    }
    plans += model.plans;
  });
  seen.plans = plans;
  return seen;
}

}  // namespace

TEST_CASE("a rank that turns slow loses layers and gets them back") {
  // 8, and 16 in the long form.
  const int microbatches = 8 * GENERATE(range(1, 1 + static_cast<int>(test::cases(1, 2))));
  const double least = microbatches == 8 ? 1.25 : 1.3;
  const std::string what = text("replan, ", microbatches, " microbatches: ");
  std::array forms{test::Form{what + "steps before the change, s"},
                   test::Form{what + "steps after it, s"}};
  test::Spread &before = forms[0].spread, &after = forms[1].spread;
  int runs = 0, judged = 0;
  const auto round = [&] {
    const Outcome seen = run_once(microbatches, before, after);
    for (const auto& changes : seen.changes) REQUIRE(changes == seen.changes[0]);
    for (const std::string& fault : seen.faults) REQUIRE(fault == seen.faults[0]);
    REQUIRE(seen.plans == 4 * (1 + static_cast<int>(seen.changes[0].size())));
    ++runs;
    // A delay by another program is a slow rank, too. The plan is judged if no look has met one.
    if (!seen.quiet) return;
    ++judged;
    CAPTURE(microbatches, seen.changes[0]);
    CHECK(seen.as_simulated());
    CHECK_THAT(seen.faults[0], ContainsSubstring("rank 2 computes"));
  };
  const auto gain = [&] { return before.median() / after.median(); };
  const bool enough =
      test::repeat_rounds(forms, round, [&] { return judged > 0 && gain() >= least; });
  std::cout << what << "all looks of " << judged << " of " << runs << " runs were quiet\n";
  CAPTURE(microbatches);
  if (enough) CHECK(gain() >= least);
  if (!enough || judged == 0) SKIP(test::no_result);
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
  bool judged = false;
  const auto round = [&] {
    std::array<std::vector<Plan>, 4> taken;
    std::array<std::array<int, 2>, 4> sums{};  // by rank: of gradients, by each plan
    bool quiet = true;                         // beside all observed steps
    run_threads(4, [&](ThreadTransport& transport) {
      const std::size_t me = +transport.rank();
      Summing model;
      model.profile = waits(unit / 8);
      AdaptiveRunner run(model, plan::PlanChoice(model.profile, four(), options), transport,
                         {.run = {.execute = nap}, .every = every, .steps = 1000});
      for (int step = 0; step < 20; ++step) {
        model.slowness = me == 1 && step >= 4 && step < 10 ? 6 : 1;
        if (run.look()) taken[me].push_back(run.plan());
        const bool step_quiet = timed_step(run, transport, nullptr);
        if (me == 0 && step % every == every - 1) quiet = quiet && step_quiet;
        sums[me][run.plan() == line ? 0 : 1] += std::exchange(model.sums, 0);
      }
    });
    for (const auto& plans : taken) REQUIRE(plans == taken[0]);
    for (const auto& [by_line, by_replicas] : sums) CHECK(by_line == 0);
    if (!quiet) return;
    judged = true;
    REQUIRE(taken[0].size() >= 2);
    CHECK(taken[0].front() == replicas);
    CHECK(taken[0].back() == line);
    for (const auto& [by_line, by_replicas] : sums) CHECK(by_replicas > 0);
  };
  (void)test::repeat_rounds({}, round, [&] { return judged; });
  if (!judged) SKIP(test::no_result);
}

TEST_CASE("where there is nothing to gain, an AdaptiveRunner loses at most 1 % of the time") {
  // A look costs the recording of one step and the observation before the next one. Both kinds of
  // steps are compared with the steps of a Runner. Looks are closer to each other here, so that the
  // test is short.
  constexpr int looks = 3, between = 3;
  const int usual = AdaptiveOptions{}.every;
  std::array forms{test::Form{"replan, nothing to gain: steps of a Runner, s"},
                   test::Form{"replan, nothing to gain: recorded steps, s"},
                   test::Form{"replan, nothing to gain: observed steps, s"}};
  test::Spread &plain = forms[0].spread, &recorded = forms[1].spread, &observed = forms[2].spread;
  const auto round = [&] {
    int changes = 0;
    bool quiet = true;
    run_threads(4, [&](ThreadTransport& transport) {
      const bool first = transport.rank() == Rank{0};
      Waits model, same;
      AdaptiveRunner run(model, choice_of(8), transport,
                         {.run = {.execute = nap}, .every = between});
      same.begin_plan(run.plan());
      Runner reference(same, run.choice().schedule(), transport, {.execute = nap});
      for (int step = 0; step < looks * between + 1; ++step) {
        const bool records = step % between == between - 1,
                   observes = step % between == 0 && step != 0;
        const bool step_quiet = timed_step(run, transport,
                                           records    ? &recorded
                                           : observes ? &observed
                                                      : nullptr);
        if (first && records) quiet = quiet && step_quiet;
        if (step % between == 0) timed_step(reference, transport, &plain);
      }
      if (first) changes = run.choice().changes();
    });
    if (quiet) CHECK(changes == 0);
  };
  const auto look = [&] {
    return std::max(0.0, recorded.median() - plain.median()) +
           std::max(0.0, observed.median() - plain.median());
  };
  const auto lost = [&] { return look() / (usual * plain.median()); };
  if (!test::repeat_rounds(forms, round, [&] { return lost() <= 0.01; })) SKIP(test::no_result);
  CHECK(lost() <= 0.01);
  std::cout << "replan, nothing to gain: a look costs " << look() * 1e3 << " ms, " << lost() * 100
            << " % of " << usual << " steps of " << plain.median() * 1e3 << " ms\n";
}

TEST_CASE("an AdaptiveRunner rejects a machine of other ranks and no steps between looks") {
  std::array<std::string, 2> messages;
  run_threads(2, [&](ThreadTransport& transport) {
    Waits model;
    messages[+transport.rank()] =
        test::message_of<contract_error>([&] { AdaptiveRunner(model, choice_of(8), transport); });
  });
  for (const std::string& message : messages)
    CHECK_THAT(message, ContainsSubstring("4 ranks, there are 2"));
  run_threads(4, [&](ThreadTransport& transport) {
    Waits model;
    const std::string message = test::message_of<contract_error>(
        [&] { AdaptiveRunner(model, choice_of(8), transport, {.every = 0}); });
    if (+transport.rank() == 0) messages[0] = message;
  });
  CHECK_THAT(messages[0], ContainsSubstring("every = 0"));
}

}  // namespace test_replan_waits
