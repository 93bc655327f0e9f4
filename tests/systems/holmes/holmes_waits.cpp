// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors

// Holmes' plan for two fast pairs of ranks (threads) that links of 20 Mbit/s join, with stages that
// wait: the step against its prediction, and the gain over groups that span the slow links.
// alone: yes

#include <cmath>
#include <cstdint>
#include <vector>

#include <catch2/catch_test_macros.hpp>

#include <heddle/core/index.hpp>
#include <heddle/core/units.hpp>
#include <heddle/machine/machine.hpp>
#include <heddle/schedule/action.hpp>
#include <heddle/schedule/plan.hpp>
#include <heddle/schedule/schedule.hpp>
#include <heddle/systems/holmes/holmes.hpp>

#include "support/waiting_plans.hpp"

namespace test_holmes_waits {

using namespace heddle;
using namespace heddle::test;

namespace {

constexpr Bytes gradient = 400'000;
constexpr Seconds forward = 5e-3;  // of a stage, for one sample

/// The slow line carries 20 Mbit/s.
Machine slow_links() { return two_pairs(20e6 / 8, 100e-6, false); }

}  // namespace

TEST_CASE("Holmes keeps groups within the fast pairs, and its rival does not") {
  const Machine machine = slow_links();
  CHECK(systems::network_clusters(machine) ==
        std::vector<std::vector<Rank>>{{Rank{0}, Rank{1}}, {Rank{2}, Rank{3}}});
  const auto [holmes, rival] = holmes_and_rival(machine, gradient, forward);
  const auto groups = [](const Plan& plan) {
    std::vector<std::vector<Rank>> ranks;
    for (const PlanStage& stage : plan.stages) ranks.push_back(stage.ranks);
    return ranks;
  };
  CHECK(groups(holmes.plan) == systems::network_clusters(machine));
  CHECK(groups(rival.plan) ==
        std::vector<std::vector<Rank>>{{Rank{0}, Rank{2}}, {Rank{1}, Rank{3}}});
  // The bytes between the pairs, each way: activations of 8 microbatches of two samples, or the
  // gradients of two stages, which a ring of two sends once.
  const auto crossing = [](const Schedule& schedule) {
    Bytes bytes = 0;
    for (std::uint32_t a = 0; a < schedule.size(); ++a) {
      const Queue& queue = schedule[schedule[ActionId{a}].queue];
      if ((+queue.from < 2) != (+queue.to < 2))
        bytes += schedule.bytes(schedule.uses(ActionId{a}).front());
    }
    return bytes;
  };
  CHECK(crossing(holmes.schedule) == 2 * 16 * 2000);
  CHECK(crossing(rival.schedule) == 2 * 2 * gradient);
}

TEST_CASE("Holmes' groups gain over groups that span slow links, as predicted") {
  auto plans = holmes_and_rival(slow_links(), gradient, forward);
  auto& [holmes, rival] = plans;
  const auto near = [](const WaitingPlan& each) { return std::abs(each.error()) <= 0.1; };
  const auto gains = [&] { return rival.took.median() / holmes.took.median() >= 1.5; };
  if (!execute_on_threads(plans, [&] { return near(holmes) && near(rival) && gains(); }))
    SKIP(no_result);
  CHECK(near(holmes));
  CHECK(near(rival));
  CHECK(rival.predicted / holmes.predicted >= 1.5);
  CHECK(gains());
}

}  // namespace test_holmes_waits
