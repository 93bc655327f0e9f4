// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors

// The best plan of all planners against the best of all plans, by simulation.

#include <catch2/catch_test_macros.hpp>

#include <heddle/plan/planner/dapple.hpp>
#include <heddle/plan/planner/hgtrainer.hpp>
#include <heddle/plan/planner/metis.hpp>
#include <heddle/plan/planner/pipedream.hpp>

#include "plan/planner_battery.hpp"
#include "support/cases.hpp"

namespace test_best_of_planners {

using namespace heddle;

TEST_CASE("the best plan of all planners is within 5% of all plans in 95% of the cases") {
  const auto any = [](const test::PlanCase&) { return true; };
  const test::OptimumGap gap =
      test::gap_to_optimum(test::cases(200, 2000), any, plan::Dapple{}, plan::PipeDream{},
                           plan::Metis{}, plan::HGTrainer{});
  WARN("of all planners " << gap.within << " of " << gap.cases << " cases within 5%, the worst, "
                          << gap.worst_seed << ", at " << gap.worst);
  CHECK(gap.cases >= 100);
  CHECK(gap.within * 100 >= gap.cases * 95);
}

}  // namespace test_best_of_planners
