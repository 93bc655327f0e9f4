// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors

// Plans for ranks of speeds 1, 1, 0.4 and 0.4 (threads) that wait instead of computing, over links
// that make sums of gradients expensive: what simulate() predicts is what a step takes, and the
// best plan gains over equal stages and over leaving the slow ranks out.
// alone: yes

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include <catch2/catch_test_macros.hpp>

#include <heddle/plan.hpp>
#include <heddle/systems/planners.hpp>
#include <heddle/trace.hpp>

#include "support/waiting_plans.hpp"

namespace test_plan_waits {

using namespace heddle;
using namespace heddle::test;

namespace {

constexpr int layers = 24;
constexpr int microbatches = 16;
constexpr int samples = 28;

/// A forward of 6 layers takes 5 ms at speed 1, a backward twice as long.
plan::Profile waits() {
  constexpr Seconds sample = 5e-3 / 6 / samples;
  plan::Profile profile{.model = "waits", .input = 40, .layers = {}, .reference = "fast"};
  profile.layers.assign(layers, {.name = "layer",
                                 .output = 40,
                                 .saved = 40,
                                 .parameters = 40'000,
                                 .measured = {{"fast", 1, 1, {sample, sample, sample, 0}}}});
  return profile;
}

Machine machine_of(int ranks, double bandwidth = 4e6) {
  std::vector<Device> devices{{.name = "fast"}, {.name = "fast"}};
  devices.resize(static_cast<std::size_t>(ranks), {.name = "slow", .speed = 0.4});
  return Machine::from_links(std::move(devices),
                             std::vector<Link>(static_cast<std::size_t>(ranks * ranks),
                                               Link{.latency = 0, .bandwidth = bandwidth}));
}

/// A plan with `counts[s]` layers and one rank for each stage.
Plan stages_of(const std::vector<int>& counts) {
  Plan plan{.microbatches = microbatches};
  int layer = 0;
  for (std::size_t s = 0; s < counts.size(); ++s) {
    plan.stages.push_back(
        {.layers = {layer, layer + counts[s]}, .ranks = {Rank{s}}, .samples = {samples}});
    layer += counts[s];
  }
  return plan;
}

/// Returns whether the median step takes what was predicted, within 5%.
bool step_is_near(const WaitingPlan& each) {
  return std::abs(each.error()) <= 0.05 &&
         std::abs(trace::plan_error(each.timeline, each.measured()).step()) <= 0.05;
}

/// Returns whether each of its stages does so, too.
bool stages_are_near(const WaitingPlan& each) {
  return std::ranges::all_of(trace::plan_error(each.timeline, each.measured()).stages,
                             [](const trace::PlanError::StageError& stage) {
                               return std::abs(stage.errors.median) <= 0.05;
                             });
}

}  // namespace

TEST_CASE("plans for unequal ranks take what simulate() predicts") {
  const plan::Profile profile = waits();
  const Machine machine = machine_of(4);
  std::vector<WaitingPlan> cases;
  const auto add = [&](std::string name, const Plan& plan) {
    for (WaitingPlan& each : cases)
      if (each.plan == plan) {
        each.name += ", " + name;
        return;
      }
    cases.push_back(waiting_plan(std::move(name), plan, profile, machine));
  };
  const plan::PlanOptions options{.batch = microbatches * samples, .microbatches = {microbatches}};
  const plan::PlanSearch found = plan::search(profile, machine, options, systems::planners());
  const Plan best = found.best();
  add("best", best);
  for (const plan::PricedPlan& each : found.plans()) {
    REQUIRE(each.found.plan);
    add(each.found.planner, *each.found.plan);
  }
  add("9, 9, 3, 3 layers", stages_of({9, 9, 3, 3}));
  add("two stages in shares",
      {.stages = {{.layers = {0, 17}, .ranks = {Rank{1}, Rank{0}}, .samples = {14, 14}},
                  {.layers = {17, 24}, .ranks = {Rank{2}, Rank{3}}, .samples = {14, 14}}},
       .microbatches = microbatches});
  const Plan equal = stages_of({6, 6, 6, 6});
  add("equal stages", equal);
  const Plan fast_only = plan::search(profile, machine_of(2), options, systems::planners()).best();
  add("without slow ranks", fast_only);

  const auto holds = [&] {
    return std::ranges::all_of(cases, step_is_near) && std::ranges::all_of(cases, stages_are_near);
  };
  if (!execute_on_threads(cases, holds, {.limit = 60})) SKIP(no_result);
  for (const WaitingPlan& each : cases) {
    INFO(each.name << ": " << each.plan << "predicted " << each.predicted << " s, executed "
                   << each.took);
    INFO(trace::plan_error(each.timeline, each.measured()));
    CHECK(step_is_near(each));
    CHECK(stages_are_near(each));
    for (const WaitingPlan& other : cases)
      if (each.predicted > 1.1 * other.predicted) CHECK(each.took.median() > other.took.median());
  }
  const auto time_of = [&](const Plan& plan) {
    return std::ranges::find(cases, plan, &WaitingPlan::plan)->took.median();
  };
  CHECK(time_of(equal) / time_of(best) >= 1.5);
  CHECK(time_of(fast_only) / time_of(best) >= 1.15);
}

TEST_CASE("shares by speed are faster than equal shares, as predicted") {
  const plan::Profile profile = waits();
  const Machine machine = machine_of(4, 1e9);  // sums of gradients take 1.5 ms
  const auto shares = [&](std::string name, std::vector<std::int64_t> of_ranks) {
    const Plan plan{.stages = {{.layers = {0, layers},
                                .ranks = {Rank{0}, Rank{1}, Rank{2}, Rank{3}},
                                .samples = std::move(of_ranks)}},
                    .microbatches = microbatches};
    return waiting_plan(std::move(name), plan, profile, machine);
  };
  std::array plans{shares("shares 7:7:7:7", {7, 7, 7, 7}),
                   shares("shares 10:10:4:4", {10, 10, 4, 4})};
  const auto gain = [&] { return plans[0].took.median() / plans[1].took.median(); };
  if (!execute_on_threads(
          plans, [&] { return std::ranges::all_of(plans, step_is_near) && gain() >= 1.65; }))
    SKIP(no_result);
  for (const WaitingPlan& each : plans) {
    INFO(each.name << ": predicted " << each.predicted << " s, executed " << each.took);
    CHECK(step_is_near(each));
  }
  CHECK(gain() >= 1.65);
}

}  // namespace test_plan_waits
