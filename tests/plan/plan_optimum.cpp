// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors

// The best plan of DAPPLE and PipeDream against the best of all plans, by simulation.

#include <algorithm>
#include <cstdint>

#include <catch2/catch_test_macros.hpp>

#include <heddle/systems/dapple/dapple.hpp>
#include <heddle/systems/pipedream/pipedream.hpp>

#include "plan/planner_battery.hpp"
#include "support/cases.hpp"

namespace test_plan_optimum {

using namespace heddle;

TEST_CASE("on equal ranks the best of DAPPLE and PipeDream is within 5% of all plans in 92%") {
  const auto equal_ranks = [](const test::PlanCase& one) {
    return std::ranges::all_of(
        one.devices, [&](const Device& device) { return device.name == one.devices.front().name; });
  };
  const test::OptimumGap gap = test::gap_to_optimum(test::cases(200, 5000), equal_ranks,
                                                    systems::Dapple{}, systems::PipeDream{});
  WARN("on equal ranks " << gap.within << " of " << gap.cases << " cases within 5%, the worst, "
                         << gap.worst_seed << ", at " << gap.worst);
  // In the others, the formulas' steady phase is far from a step of two or three microbatches.
  CHECK(gap.cases >= 75);
  CHECK(gap.within * 100 >= gap.cases * 92);
}

}  // namespace test_plan_optimum
