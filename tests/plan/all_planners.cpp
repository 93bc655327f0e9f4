// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors

// The best plan of all planners against the best of all plans, by simulation, also on unequal
// ranks; and the battery for Holmes, Replicas and Frontier 3D.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <iostream>
#include <optional>
#include <vector>

#include <catch2/catch_test_macros.hpp>

#include <heddle/core/index.hpp>
#include <heddle/core/units.hpp>
#include <heddle/plan/plan_problem.hpp>
#include <heddle/plan/planner/replicas.hpp>
#include <heddle/schedule/plan.hpp>
#include <heddle/systems/dapple/dapple.hpp>
#include <heddle/systems/frontier_3d/frontier.hpp>
#include <heddle/systems/hgtrainer/hgtrainer.hpp>
#include <heddle/systems/holmes/holmes.hpp>
#include <heddle/systems/metis/metis.hpp>
#include <heddle/systems/pipedream/pipedream.hpp>

#include "plan/planner_battery.hpp"
#include "support/cases.hpp"

namespace test_all_planners {

using namespace heddle;

TEST_CASE("the best of all planners is within 5% of the best of all plans in 95% of the cases") {
  const test::OptimumGap gap = test::gap_to_optimum(
      test::cases(200, 5000), [](const test::PlanCase&) { return true; }, systems::Dapple{},
      systems::PipeDream{}, systems::Metis{}, systems::HGTrainer{}, systems::Holmes{},
      systems::Frontier3D{}, plan::Replicas{});
  std::cout << "all planners: " << gap.within << " of " << gap.cases
            << " cases within 5%, the worst, " << gap.worst_seed << ", at " << gap.worst << '\n';
  CHECK(gap.cases >= 150);
  CHECK(gap.within * 100 >= gap.cases * 95);
}

TEST_CASE("Holmes passes the battery of the planners") {
  // It tries all of its plans, so that a better machine is never slower.
  const auto unknown = [](const plan::PlanProblem&) { return std::optional<Seconds>(); };
  test::planner_battery(systems::Holmes{}, unknown,
                        {.cases = test::cases(200, 20'000),
                         .exact = false,
                         .monotone = true,
                         .indivisible = "no division gives each of"});
}

TEST_CASE("Replicas passes the battery of the planners") {
  const auto unknown = [](const plan::PlanProblem&) { return std::optional<Seconds>(); };
  test::planner_battery(plan::Replicas{}, unknown,
                        {.cases = test::cases(200, 20'000), .exact = false, .monotone = true});
}

TEST_CASE("Frontier 3D passes the battery of the planners, and finds the best uniform plan") {
  const auto least = [](const plan::PlanProblem& problem) {
    std::optional<Seconds> best;
    const int ranks = problem.machine().ranks();
    for (const int microbatches : problem.options().microbatches)
      for (int stages = 1; stages <= std::min(ranks, problem.layers()); ++stages)
        for (const char* sharding : {"", "zero1"})
          for (const bool recompute : {false, true}) {
            const int groups = ranks / stages;
            const std::int64_t samples = problem.options().batch / microbatches;
            if (stages * groups != ranks || samples % groups != 0) continue;
            if (groups == 1 && *sharding != '\0') continue;
            Plan plan{.stages = {},
                      .microbatches = microbatches,
                      .schedule = problem.options().schedule,
                      .sharding = sharding};
            // Earlier stages get the layers that do not divide.
            int first = 0;
            Seconds longest = 0, sum = 0, update = 0;
            for (int s = 0; s < stages; ++s) {
              const int count = (problem.layers() + stages - s - 1) / stages;
              PlanStage stage{.layers = {first, first + count},
                              .ranks = {},
                              .samples = std::vector<std::int64_t>(static_cast<std::size_t>(groups),
                                                                   samples / groups),
                              .recompute = recompute};
              for (int r = 0; r < groups; ++r) stage.ranks.push_back(Rank{s * groups + r});
              first += count;
              plan.stages.push_back(stage);
            }
            if (plan::memory_shortage(plan, problem)) continue;
            for (const plan::StagePrice& price : plan::stage_prices(plan, problem)) {
              longest = std::max(longest, price.forward + price.backward);
              sum = std::max(sum, price.gradient_sum);
              update = std::max(update, price.update);
            }
            const Seconds time = (microbatches + stages - 1) * longest + sum + update;
            if (!best || time < *best) best = time;
          }
    return best;
  };
  test::planner_battery(systems::Frontier3D{}, least,
                        {.cases = test::cases(200, 20'000), .indivisible = "no degrees divide"});
}

}  // namespace test_all_planners
