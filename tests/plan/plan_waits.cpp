// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors

// Plans for ranks of speeds 1, 1, 0.4 and 0.4 (threads) that wait instead of computing, over links
// that make sums of gradients expensive: what simulate() predicts is what a step takes, and the
// best plan gains over equal stages and over leaving the slow ranks out.
// alone: yes

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <iostream>
#include <string>
#include <utility>
#include <vector>

#include <catch2/catch_test_macros.hpp>

#include <heddle/plan.hpp>
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
Profile waits() {
  constexpr Seconds sample = 5e-3 / 6 / samples;
  Profile profile{.model = "waits", .input = 40, .layers = {}, .reference = "fast"};
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

}  // namespace

TEST_CASE("plans for unequal ranks take what simulate() predicts") {
  const Profile profile = waits();
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
  const plan::PlanSearch found = plan::search(profile, machine, options);
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
  const Plan fast_only = plan::search(profile, machine_of(2), options).best();
  add("without slow ranks", fast_only);

  // Other programs make a run longer, and nothing makes it shorter: runs of all plans are repeated
  // in turns until the fastest ones are near their predictions.
  for (int round = 0; round < 20; ++round) {
    bool near = round >= 1;
    for (WaitingPlan& each : cases) {
      if (round >= 1 && each.error() <= 0.03) continue;
      execute_on_threads(each);
      near = near && each.error() <= 0.05;
    }
    if (near) break;
  }
  for (const WaitingPlan& each : cases) {
    std::cout << each.name << ": predicted " << each.predicted << " s, executed " << each.fastest
              << " s\n";
    INFO(each.name << ": " << each.plan << "predicted " << each.predicted << " s, executed "
                   << each.fastest << " s");
    CHECK(std::abs(each.error()) <= 0.05);
    const trace::PlanError error = trace::plan_error(each.timeline, each.measured);
    INFO(error);
    CHECK(std::abs(error.step()) <= 0.05);
    for (const trace::StageError& stage : error.stages)
      CHECK(std::abs(stage.errors.median) <= 0.05);
    for (const WaitingPlan& other : cases)
      if (each.predicted > 1.1 * other.predicted) CHECK(each.fastest > other.fastest);
  }
  const auto time_of = [&](const Plan& plan) {
    return std::ranges::find(cases, plan, &WaitingPlan::plan)->fastest;
  };
  CHECK(time_of(equal) / time_of(best) >= 1.5);
  CHECK(time_of(fast_only) / time_of(best) >= 1.15);
}

TEST_CASE("shares by speed are faster than equal shares, as predicted") {
  const Profile profile = waits();
  const Machine machine = machine_of(4, 1e9);  // sums of gradients take 1.5 ms
  const auto shares = [&](std::vector<std::int64_t> of_ranks) {
    const Plan plan{.stages = {{.layers = {0, layers},
                                .ranks = {Rank{0}, Rank{1}, Rank{2}, Rank{3}},
                                .samples = std::move(of_ranks)}},
                    .microbatches = microbatches};
    return waiting_plan("shares", plan, profile, machine);
  };
  WaitingPlan equal = shares({7, 7, 7, 7}), by_speed = shares({10, 10, 4, 4});
  for (int round = 0; round < 20; ++round) {
    execute_on_threads(equal);
    execute_on_threads(by_speed);
    if (std::abs(equal.error()) <= 0.04 && std::abs(by_speed.error()) <= 0.04) break;
  }
  for (const WaitingPlan* each : {&equal, &by_speed}) {
    std::cout << "shares";
    for (const std::int64_t of_rank : each->plan.stages[0].samples) std::cout << ' ' << of_rank;
    std::cout << ": predicted " << each->predicted << " s, executed " << each->fastest << " s\n";
    CHECK(std::abs(each->error()) <= 0.05);
    CHECK(std::abs(trace::plan_error(each->timeline, each->measured).step()) <= 0.05);
  }
  CHECK(equal.fastest / by_speed.fastest >= 1.65);
}

}  // namespace test_plan_waits
