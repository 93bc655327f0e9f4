// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors

// Checks what plan::search() makes of what planners find: prices, plans that do not fit, the best
// plan, the printed lines, and names that do not exist.

#include <cstddef>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>

#include <heddle/core/contract.hpp>
#include <heddle/core/error.hpp>
#include <heddle/core/text.hpp>
#include <heddle/machine/machine.hpp>
#include <heddle/plan/plan_schedule.hpp>
#include <heddle/plan/planner.hpp>
#include <heddle/systems/planners.hpp>

#include "support/complaint.hpp"

namespace test_plan_search {

namespace hd = heddle;
namespace hp = heddle::plan;
using Catch::Matchers::ContainsSubstring;
using hd::test::message_of;

namespace {

hd::plan::Profile two_layers() {
  const hd::plan::ProfiledLayer layer{
      .output = 100, .saved = 40, .parameters = 200, .measured = {{"gpu", 1, 1, {1, 2, 1, 0}}}};
  return {.model = "two", .layers = {layer, layer}};
}

/// Puts each layer on a rank of its own, for the whole batch at once.
struct OneEach {
  static constexpr std::string_view name = "OneEach";

  [[nodiscard]] hp::FoundPlan search(const hp::PlanProblem& problem) const {
    hd::Plan plan;
    for (int l = 0; l < problem.layers(); ++l)
      plan.stages.push_back(
          {.layers = {l, l + 1}, .ranks = {hd::Rank{l}}, .samples = {problem.options().batch}});
    return {.planner = "OneEach", .plan = plan, .formula = formula(plan, problem), .candidates = 1};
  }
  [[nodiscard]] double formula(const hd::Plan& plan, const hp::PlanProblem&) const {
    return static_cast<double>(plan.stages.size());
  }
};
static_assert(hp::Planner<OneEach>);

hp::PricedPlan priced(const char* name, double simulated) {
  const hd::Plan plan{.stages = {{.layers = {0, 2}, .ranks = {0}, .samples = {1}}},
                      .schedule = name};
  return {.found = {.planner = name, .plan = plan, .formula = 0.5, .candidates = 7},
          .simulated = simulated,
          .memory = {500'000'000, 1'500'000'000}};
}

hp::PricedPlan none(const char* name, const char* why) {
  return {.found = {.planner = name, .candidates = 3, .infeasible = why}};
}

}  // namespace

TEST_CASE("a found plan is priced by the simulator, or dropped if it does not fit") {
  const hp::NamedPlanner planner = hp::named_planner<OneEach>("one layer a rank");
  const hd::plan::Profile profile = two_layers();
  const auto machine_of = [](hd::Bytes capacity) {
    return hd::Machine::uniform(
        2, {.name = "gpu", .memories = {{.name = "HBM", .capacity = capacity}}}, {});
  };
  const hd::Machine enough = machine_of(1760), little = machine_of(1759);
  const auto priced = [&](const hd::Machine& machine) {
    const hp::PlanProblem problem(profile, machine, {.batch = 4});
    return hp::priced_plan(planner.search(problem), problem);
  };
  const hp::PricedPlan good = priced(enough);
  REQUIRE(good.found.plan);
  CHECK(good.found.formula == 2);
  CHECK(good.simulated == 2 * 4 + 2 * 12);
  CHECK(good.memory == std::vector<hd::Bytes>{1760, 1760});
  CHECK(good.found.plan->prediction == hd::PlanPrediction{32, {1760, 1760}});
  const hp::PricedPlan bad = priced(little);
  CHECK_FALSE(bad.found.plan);
  CHECK(bad.found.infeasible == "rank 0 needs 1760 bytes and has 1759");
}

TEST_CASE("the best plan has the least simulated time, and of equal ones it is the first") {
  const hp::PlanSearch search(
      {none("A", "no memory"), priced("B", 3), priced("C", 2), priced("D", 2)});
  CHECK(search.best().schedule == "C");
  CHECK(search.plans().size() == 4);
  CHECK(hd::text(search) ==
        "planner  formula  simulated  memory of the fullest rank  candidates\n"
        "A        infeasible: no memory\n"
        "B        0.5 s    3 s        1.5 GB                      7\n"
        "C        0.5 s    2 s        1.5 GB                      7\n"
        "D        0.5 s    2 s        1.5 GB                      7");
  const hp::PlanSearch failed({none("A", "rank 0 needs much"), none("B", "too many layers")});
  CHECK_THAT(message_of<hd::infeasible>([&] { (void)failed.best(); }),
             ContainsSubstring("A: rank 0 needs much; B: too many layers"));
  CHECK_THROWS_AS((void)hp::PlanSearch({}).best(), hd::infeasible);
}

TEST_CASE("planners are found by name, each name once") {
  std::set<std::string_view> names;
  for (const hp::NamedPlanner& planner : hd::systems::planners()) {
    CHECK(names.insert(planner.name).second);
    CHECK(&hp::find_planner(hd::systems::planners(), planner.name) == &planner);
    CHECK_FALSE(planner.about.empty());
  }
  const std::string error = message_of<hd::contract_error>(
      [] { (void)hp::find_planner(hd::systems::planners(), "no such planner"); });
  CHECK_THAT(error, ContainsSubstring("no planner 'no such planner'"));
  for (const std::string_view name : names) CHECK_THAT(error, ContainsSubstring(std::string(name)));
}

TEST_CASE("all planners give valid plans, in the order of their list") {
  const hd::plan::Profile profile = two_layers();
  const hd::Machine machine = hd::Machine::uniform(2, {"gpu"}, {1e-3, 1e3});
  const hp::PlanSearch all = hp::search(profile, machine, {.batch = 4}, hd::systems::planners());
  REQUIRE(all.plans().size() == hd::systems::planners().size());
  for (std::size_t p = 0; p < all.plans().size(); ++p) {
    const hp::FoundPlan& found = all.plans()[p].found;
    CHECK(found.planner == hd::systems::planners()[p].name);
    REQUIRE(found.plan);
    CHECK_NOTHROW(hd::check(*found.plan, 2, 2));
    CHECK(found.plan->batch() == 4);
    CHECK(found.plan->prediction ==
          hp::predict(*found.plan, hp::PlanProblem(profile, machine, {.batch = 4})));
    // One planner alone finds the same; to ask twice is to ask once.
    const std::string name(hd::systems::planners()[p].name);
    const hp::PlanSearch one = hp::search(
        profile, machine, {.batch = 4}, hp::select_planners(hd::systems::planners(), {name, name}));
    REQUIRE(one.plans().size() == 1);
    CHECK(one.plans()[0].found.plan == found.plan);
  }
  CHECK_THROWS_AS(hp::select_planners(hd::systems::planners(), {"Metis", "nobody"}),
                  hd::contract_error);
  CHECK_THROWS_AS(hp::search(profile, machine, {.batch = 4}, {}), hd::contract_error);
  const auto selected = hp::select_planners(hd::systems::planners(), {"Metis", "DAPPLE", "Metis"});
  REQUIRE(selected.size() == 2);
  CHECK(selected[0].name == "DAPPLE");
  CHECK(selected[1].name == "Metis");
}

TEST_CASE("noise in the measurements of a profile does not make steps free") {
  const hd::plan::LayerTimes one = {1e-4, 1e-4, 1e-4, 0}, two = {9.9e-5, 9.9e-5, 9.9e-5, 0};
  const hd::plan::ProfiledLayer layer{.output = 4,
                                      .saved = 4,
                                      .parameters = 4,
                                      .measured = {{"gpu", 1, 1, one}, {"gpu", 1, 2, two}}};
  const hd::plan::Profile profile{.model = "noisy", .layers = {layer, layer}};
  const hd::Machine machine = hd::Machine::uniform(2, {"gpu"}, {1e-6, 1e9});
  for (const int microbatches : {1, 2, 128}) {
    const hp::PlanSearch found = hp::search(
        profile, machine, {.batch = 128, .microbatches = {microbatches}}, hd::systems::planners());
    for (const hp::PricedPlan& priced : found.plans()) {
      CAPTURE(priced.found.planner, microbatches);
      REQUIRE(priced.found.plan);
      // Two ranks at least, at the rate of two samples in 0.1 ms, or of one for one at a time.
      const double rate = microbatches == 128 ? 1 : 0.5;
      CHECK(priced.simulated >= (1 - 1e-9) * rate * 128 / 2 * 2 * 3 * 1e-4);
    }
  }
}

TEST_CASE("executable plans have a Schedule whatever their tensor degrees") {
  int divided = 0, refused = 0;  // plans of either search
  for (hd::Bytes parameters = 1; parameters <= 1'000'000'000; parameters *= 1000)
    for (int layers = 1; layers <= 4; ++layers)
      for (int samples = 1; samples <= 6; ++samples) {
        const double time = 0.1;
        const hd::plan::ProfiledLayer layer{
            .output = 4096,
            .saved = 4096,
            .parameters = 4 * parameters,
            .measured = {{"gpu", 1, 1, {time, time, time, 0}},
                         {"gpu", 2, 1, {time / 2, time / 2, time / 2, 0}},
                         {"gpu", 4, 1, {time / 3, time / 3, time / 3, 0}}}};
        const hd::plan::Profile profile{.model = "divided",
                                        .layers = {static_cast<std::size_t>(layers), layer}};
        const hd::Machine machine = hd::Machine::uniform(4, {.name = "gpu"}, {1e-6, 1e9});
        for (const bool executable : {true, false}) {
          const hp::PlanSearch found =
              hp::search(profile, machine,
                         {.batch = 2 * samples, .microbatches = {2}, .executable = executable},
                         hd::systems::planners());
          for (const hp::PricedPlan& priced : found.plans()) {
            if (!priced.found.plan) continue;
            CAPTURE(priced.found.planner, *priced.found.plan);
            try {
              (void)hp::schedule(*priced.found.plan, profile);
            } catch (const hd::contract_error&) {
              CHECK_FALSE(executable);
              ++refused;
            }
            for (const hd::PlanStage& stage : priced.found.plan->stages)
              divided += executable && stage.tensor > 1;
          }
        }
      }
  CHECK(divided > 0);
  CHECK(refused > 0);
}

}  // namespace test_plan_search
