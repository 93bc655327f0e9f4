// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors

// The best plan of all planners against the best of all plans, by simulation, also on unequal
// ranks.

#include <cstdint>
#include <iostream>

#include <catch2/catch_test_macros.hpp>

#include <heddle/plan/planner/dapple.hpp>
#include <heddle/plan/planner/frontier.hpp>
#include <heddle/plan/planner/hgtrainer.hpp>
#include <heddle/plan/planner/holmes.hpp>
#include <heddle/plan/planner/metis.hpp>
#include <heddle/plan/planner/pipedream.hpp>

#include "plan/planner_battery.hpp"
#include "support/cases.hpp"

namespace test_all_planners {

using namespace heddle;

TEST_CASE("the best of all planners is within 5% of the best of all plans in 95% of the cases") {
  const test::OptimumGap gap = test::gap_to_optimum(
      test::cases(200, 5000), [](const test::PlanCase&) { return true; }, plan::Dapple{},
      plan::PipeDream{}, plan::Metis{}, plan::HGTrainer{}, plan::Holmes{}, plan::Frontier3D{});
  std::cout << "all planners: " << gap.within << " of " << gap.cases
            << " cases within 5%, the worst, " << gap.worst_seed << ", at " << gap.worst << '\n';
  CHECK(gap.cases >= 150);
  CHECK(gap.within * 100 >= gap.cases * 95);
}

}  // namespace test_all_planners
