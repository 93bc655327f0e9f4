// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors

// The time and the memory of plans whose steady periods are skipped, against those of all actions
// and against closed forms of a million microbatches.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <catch2/catch_test_macros.hpp>

#include <heddle/core/error.hpp>
#include <heddle/core/random.hpp>
#include <heddle/core/text.hpp>
#include <heddle/machine/machine.hpp>
#include <heddle/plan/impl/plan_orders.hpp>
#include <heddle/plan/internal/kept_by_stage.hpp>
#include <heddle/plan/internal/step_in_periods.hpp>
#include <heddle/plan/plan_problem.hpp>
#include <heddle/plan/profile.hpp>
#include <heddle/schedule/generator/catalogue.hpp>
#include <heddle/schedule/plan.hpp>
#include <heddle/simulate/internal/repeated_orders.hpp>

#include "support/cases.hpp"
#include "support/coverage.hpp"

namespace test_many_microbatches {

using namespace heddle;

namespace {

/// Draws numbers one after another.
class Draw {
 public:
  explicit Draw(std::uint64_t seed) : m_random(seed, "many microbatches") {}

  int below(int bound) {
    return static_cast<int>(m_random.below(m_next++, static_cast<std::uint64_t>(bound)));
  }
  /// A time that is a whole multiple of 1/1024, so that no sum of the simulator is rounded.
  double time() { return (1 + below(4000)) / 1024.0; }

 private:
  Random m_random;
  std::uint64_t m_next = 0;
};

plan::Profile random_profile(Draw& draw, int layers) {
  plan::Profile profile{.model = "random", .input = 64, .layers = {}, .reference = "gpu"};
  for (int l = 0; l < layers; ++l)
    profile.layers.push_back(
        {.output = static_cast<Bytes>(4 * (1 + draw.below(500))),
         .saved = static_cast<Bytes>(4 * (1 + draw.below(50))),
         .delta = static_cast<Bytes>(4 * draw.below(50)),
         .parameters = static_cast<Bytes>(8 * (1 + draw.below(500))),
         .measured = {{"gpu", 1, 1, {draw.time(), draw.time(), draw.time(), draw.time()}}}});
  return profile;
}

/// Returns a plan with one or two ranks for each stage, which has `layers` layers.
Plan random_plan(Draw& draw, const std::string& schedule, int stages, int layers) {
  Plan plan{.schedule = schedule};
  const int shards = 1 + draw.below(2);
  for (int s = 0; s < stages; ++s) {
    PlanStage& stage = plan.stages.emplace_back();
    stage.layers = {s * layers, (s + 1) * layers};
    for (int i = 0; i < shards; ++i) {
      stage.ranks.emplace_back(s * shards + i);
      stage.samples.push_back(1);
    }
    stage.recompute = draw.below(4) == 0;
  }
  plan.microbatches = 1 + draw.below(120);
  plan.buckets = 1 + draw.below(layers);
  return plan;
}

/// Returns what the stages keep if the orders are written with their repetitions.
plan::impl::KeptByStage kept_by_period(const Plan& plan) {
  return plan::impl::kept_by_orders(
      impl::periodic_orders(
          [&](int microbatches) {
            return plan::impl::line_orders(plan.schedule, plan.stages.size(), microbatches, "test");
          },
          plan.microbatches)
          .lists);
}

}  // namespace

TEST_CASE("a plan whose periods are skipped has the price of all its actions") {
  Draw draw(11);
  test::Coverage coverage("plans");
  const std::uint64_t rounds = test::cases(12, 400);
  for (std::uint64_t round = 0; round < rounds; ++round)
    for (const schedule::NamedSchedule& entry : schedule::catalogue()) {
      const int stages = 1 + draw.below(5), layers = 1 + draw.below(3);
      const plan::Profile profile = random_profile(draw, stages * layers);
      const Machine machine = Machine::uniform(2 * stages, {.name = "gpu"},
                                               {.latency = draw.time(), .bandwidth = 1024});
      const Plan plan = random_plan(draw, std::string(entry.name), stages, layers);
      const plan::PlanProblem problem(profile, machine,
                                      {.batch = plan.batch(), .schedule = std::string(entry.name)});
      Seconds all = 0;
      try {
        all = simulated_timeline(plan, problem).makespan();
      } catch (const error&) {  // there are other stages, or no orders of so many microbatches
        continue;
      }
      INFO(plan);
      const auto kept = plan::impl::kept_by_orders(plan::impl::plan_orders(plan, "test"));
      const auto kept_periods = kept_by_period(plan);
      REQUIRE(kept_periods.live == kept.live);
      REQUIRE(kept_periods.split == kept.split);
      Seconds periods = 0;
      try {
        periods = plan::impl::step_in_periods(plan, problem);
      } catch (const infeasible& none) {
        CAPTURE(none.what());
        REQUIRE((plan.bucket_count() > 1 && entry.name.starts_with("pipedream")));
        REQUIRE(std::string_view(none.what()).find("updates of buckets have no steady period") !=
                std::string_view::npos);
        coverage.count("no period", true);
        continue;
      }
      REQUIRE(periods == all);
      coverage.count("one bucket", plan.bucket_count() == 1);
      coverage.count("several buckets", plan.bucket_count() > 1);
      coverage.count("many microbatches", plan.microbatches > 60);
      for (const char* name : {"gpipe", "1f1b", "dapple", "kfkb", "zb-h1", "zb-h2", "2bp-1f1b",
                               "2bp-gpipe", "pipedream"})
        coverage.count(name, entry.name == name);
    }
  CAPTURE(coverage);
  REQUIRE(coverage.rarer_than(1) == "");
}

TEST_CASE("plans of a million microbatches have closed forms") {
  constexpr int stages = 64, microbatches = 1'000'000;
  plan::Profile profile{.model = "equal", .input = 4, .layers = {}, .reference = "gpu"};
  Plan plan{.microbatches = microbatches};
  for (int s = 0; s < stages; ++s) {
    profile.layers.push_back(
        {.output = 4, .saved = 40, .parameters = 8, .measured = {{"gpu", 1, 1, {1, 1, 1, 0.5}}}});
    PlanStage& stage = plan.stages.emplace_back();
    stage.layers = {s, s + 1};
    stage.ranks = {Rank{s}};
    stage.samples = {1};
  }
  const Machine machine = Machine::uniform(stages, {.name = "gpu"}, {});
  const plan::PlanProblem problem(profile, machine, {.batch = microbatches});
  const auto predicted = [&](const char* name) {
    plan.schedule = name;
    return plan::predict(plan, problem);
  };
  const PlanPrediction one_f_one_b = predicted("1f1b"), gpipe = predicted("gpipe"),
                       zb_h1 = predicted("zb-h1");
  REQUIRE(one_f_one_b.step == 3.0 * (microbatches + stages - 1) + 0.5);
  REQUIRE(gpipe.step == one_f_one_b.step);
  REQUIRE(zb_h1.step == 3.0 * microbatches + (stages - 1) + 0.5);
  // 1F1B keeps as many microbatches as there are stages behind it; GPipe keeps all of them, each
  // with 40 bytes that it saves and with the 4 bytes of its input, which the first stage lacks.
  const Bytes most = stages, all = microbatches;
  plan.microbatches = 4096;
  const plan::PlanProblem fewer(profile, machine, {.batch = 4096});
  plan.schedule = "1f1b";
  REQUIRE(one_f_one_b.memory == plan::plan_memory(plan, fewer));
  REQUIRE(gpipe.memory[0] == one_f_one_b.memory[0] + 40 * (all - most));
  REQUIRE(gpipe.memory[stages - 1] ==
          one_f_one_b.memory[stages - 1] + 40 * (all - 1) + 4 * (all - 3));
}

TEST_CASE("a plan that is too large to go without a period is rejected") {
  Draw draw(12);
  constexpr int most = plan::impl::most_listed_without_period;
  const plan::Profile profile = random_profile(draw, 2);
  const Machine machine = Machine::uniform(1, {.name = "gpu"}, {});
  Plan plan{.stages = {{.layers = {0, 2}, .ranks = {Rank{0}}, .samples = {1}}},
            .schedule = "pipedream",
            .buckets = 2};
  plan.microbatches = most + 1;
  try {
    (void)plan::simulated_step(plan, {profile, machine, {.batch = most + 1}});
    FAIL("a plan that is too large has a price");
  } catch (const infeasible& none) {
    REQUIRE(none.complaint().what ==
            "updates of buckets have no steady period if they are among passes");
    REQUIRE(none.complaint().fix == "use one bucket, or fewer microbatches");
  }
}

TEST_CASE("a schedule with a steady period lists few of many passes, and all of few") {
  std::uint64_t listed = 0;
  REQUIRE(plan::impl::kept_by_stage("1f1b", 2, 1000, &listed));
  REQUIRE(listed == 2000);
  listed = 0;
  constexpr int many = plan::impl::most_listed_without_period;
  REQUIRE(plan::impl::kept_by_stage("1f1b", 2, many, &listed));
  REQUIRE((listed > 0 && listed < 1000));
}

}  // namespace test_many_microbatches
