// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors

// A search ends when its budget is spent, with the best plans so far; a planner that fails costs no
// answer of the others; and no plan is faster than the lower bound.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <new>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>

#include <heddle/core/contract.hpp>
#include <heddle/core/text.hpp>
#include <heddle/machine/machine.hpp>
#include <heddle/plan/internal/search_watch.hpp>
#include <heddle/plan/plan_problem.hpp>
#include <heddle/plan/planner/search.hpp>
#include <heddle/plan/profile.hpp>
#include <heddle/schedule/plan.hpp>
#include <heddle/systems/planners.hpp>

#include "plan/planner_battery.hpp"
#include "support/cases.hpp"
#include "support/complaint.hpp"

namespace test_search_budget {

using namespace heddle;
using Catch::Matchers::ContainsSubstring;
using test::message_of;

namespace {

constexpr std::uint64_t unlimited = std::numeric_limits<std::uint64_t>::max();

/// Returns a chain of layers of different sizes, measured on two kinds of devices.
plan::Profile chain(int layers) {
  plan::Profile profile{.model = "chain", .input = 100'000, .layers = {}};
  for (int l = 0; l < layers; ++l) {
    plan::ProfiledLayer layer{.name = text("layer ", l),
                              .output = static_cast<Bytes>(1000 * (1 + (7 * l) % 5)),
                              .saved = 5000,
                              .parameters = static_cast<Bytes>(4000 * (1 + (3 * l) % 4))};
    for (const char* kind : {"fast", "slow"})
      for (const int tensor : {1, 2}) {
        const double time = (kind[0] == 'f' ? 1e-3 : 2.5e-3) * (1 + 0.2 * ((5 * l) % 3)) / tensor;
        layer.measured.push_back({kind, tensor, 1, {time, time, time, 1e-5}});
      }
    profile.layers.push_back(std::move(layer));
  }
  return profile;
}

/// Returns two sites of nodes of four ranks, one with fast and one with slow devices.
Machine two_sites(int ranks_of_site, Bytes capacity = 0) {
  std::vector<Device> devices;
  for (const char* kind : {"fast", "slow"})
    for (int r = 0; r < ranks_of_site; ++r)
      devices.push_back({.name = kind, .memories = {{.name = "HBM", .capacity = capacity}}});
  return Machine::hierarchical(std::move(devices),
                               {{.name = "node", .ranks = 4, .link = {1e-6, 1e10}},
                                {.name = "site", .ranks = ranks_of_site, .link = {5e-6, 1e9}},
                                {.name = "line", .ranks = 2 * ranks_of_site, .link = {1e-3, 1e8}}});
}

/// Puts all layers on rank 0.
struct OneRank {
  static constexpr std::string_view name = "OneRank";

  [[nodiscard]] plan::FoundPlan search(const plan::PlanProblem& problem) const {
    const std::int64_t batch = problem.options().batch;
    const Plan plan{
        .stages = {{.layers = {0, problem.layers()}, .ranks = {Rank{0}}, .samples = {batch}}}};
    return {.planner = "OneRank", .plan = plan, .formula = 1, .candidates = 1};
  }
  [[nodiscard]] Seconds formula(const Plan&, const plan::PlanProblem&) const { return 1; }
};

/// Searches until the budget is spent.
struct Endless : OneRank {
  static constexpr std::string_view name = "Endless";

  [[nodiscard]] plan::FoundPlan search(const plan::PlanProblem& problem) const {
    plan::impl::SearchWatch watch(problem, name);
    std::size_t rounds = 0;
    while (!watch.spend(1000)) watch.note(++rounds, 2);
    plan::FoundPlan found = OneRank::search(problem);
    found.planner = name;
    found.candidates = rounds;
    found.end = watch.result();
    return found;
  }
};

struct NoMemory : OneRank {
  static constexpr std::string_view name = "NoMemory";
  [[nodiscard]] plan::FoundPlan search(const plan::PlanProblem&) const { throw std::bad_alloc(); }
};

struct Broken : OneRank {
  static constexpr std::string_view name = "Broken";
  [[nodiscard]] plan::FoundPlan search(const plan::PlanProblem&) const {
    throw std::runtime_error("no idea");
  }
};

/// Puts all layers on one rank: on a fast one in a search of few steps, on a slow one if there are
/// more of them. It has no memory for more steps than by default.
struct Unsteady : OneRank {
  static constexpr std::string_view name = "Unsteady";

  [[nodiscard]] plan::FoundPlan search(const plan::PlanProblem& problem) const {
    const std::uint64_t steps = problem.options().budget.steps;
    if (steps > plan::PlanBudget{}.steps) throw std::bad_alloc();
    const std::int64_t batch = problem.options().batch;
    const Rank rank{steps < plan::PlanBudget{}.steps ? 0 : problem.machine().ranks() - 1};
    const Plan plan{
        .stages = {{.layers = {0, problem.layers()}, .ranks = {rank}, .samples = {batch}}}};
    return {.planner = std::string(name),
            .plan = plan,
            .formula = 1,
            .candidates = static_cast<std::size_t>(steps),
            .end = plan::SearchEnd::cut_off};
  }
};

const std::vector<plan::NamedPlanner> one_and_failures = {
    plan::named_planner<NoMemory>("has no memory"), plan::named_planner<OneRank>("one rank"),
    plan::named_planner<Broken>("has no idea")};

}  // namespace

TEST_CASE("a planner that fails costs no answer of the others") {
  const plan::Profile profile = chain(2);
  const Machine machine = two_sites(4);
  const plan::PlanSearch found = plan::search(profile, machine, {.batch = 4}, one_and_failures);
  REQUIRE(found.plans().size() == 3);
  CHECK(found.plans()[0].found.end == plan::SearchEnd::failed);
  CHECK(found.plans()[0].found.planner == "NoMemory");
  CHECK(found.plans()[0].found.infeasible == "failed: there is no memory left");
  CHECK(found.plans()[1].found.end == plan::SearchEnd::complete);
  CHECK(found.plans()[2].found.end == plan::SearchEnd::failed);
  CHECK(found.plans()[2].found.infeasible == "failed: no idea");
  CHECK(found.best_priced().found.planner == "OneRank");
  CHECK_THAT(text(found), ContainsSubstring("Broken    failed: no idea"));
  // If all fail, the caller gets the first exception.
  const std::vector<plan::NamedPlanner> failures = {one_and_failures[2], one_and_failures[0]};
  CHECK_THROWS_AS(plan::search(profile, machine, {.batch = 4}, failures), std::runtime_error);
}

TEST_CASE("steps, bytes and seconds end a search") {
  const plan::Profile profile = chain(2);
  const Machine machine = two_sites(4);
  const auto search = [&](const plan::PlanBudget& budget) {
    const plan::PlanProblem problem(profile, machine, {.batch = 4, .budget = budget});
    return Endless{}.search(problem);
  };
  for (const std::uint64_t steps : {0u, 999u, 1000u, 1001u, 50'000u}) {
    const plan::FoundPlan found = search({.steps = steps});
    CHECK(found.end == plan::SearchEnd::cut_off);
    CHECK(found.candidates == (steps == 0 ? 0 : (steps - 1) / 1000));
  }
  CHECK(search({.seconds = 0.02, .steps = unlimited}).end == plan::SearchEnd::cut_off);
  CHECK(search({.seconds = 0, .steps = unlimited}).candidates <= 100);
  const plan::PlanProblem problem(profile, machine, {.batch = 4, .budget = {.bytes = 1000}});
  plan::impl::SearchWatch watch(problem, "bytes");
  CHECK_FALSE(watch.hold(1000));
  watch.release();
  CHECK_FALSE(watch.hold(1000));
  CHECK(watch.result() == plan::SearchEnd::complete);
  CHECK(watch.hold(1));
  CHECK(watch.spend(0));
  CHECK(watch.result() == plan::SearchEnd::cut_off);
  watch.begin_part(1);  // another part has no tables yet
  CHECK_FALSE(watch.spend(1));
  CHECK(watch.result() == plan::SearchEnd::cut_off);
  CHECK_THAT(message_of<contract_error>([&] { (void)search({.seconds = -1}); }),
             ContainsSubstring("budget.seconds = -1"));
}

TEST_CASE("parts of a search share its steps, and leave what they do not spend to later ones") {
  const plan::Profile profile = chain(1);
  const Machine machine = two_sites(4);
  const plan::PlanProblem problem(profile, machine, {.batch = 1, .budget = {.steps = 900}});
  plan::impl::SearchWatch watch(problem, "parts");
  watch.begin_part(3);
  CHECK(watch.enough(300));
  CHECK_FALSE(watch.enough(301));
  CHECK(watch.spend(300));
  watch.begin_part(2);
  CHECK_FALSE(watch.spend(100));
  watch.begin_part(1);
  CHECK(watch.left() == 500);
  CHECK_FALSE(watch.spend(499));
  CHECK(watch.spend(1));
  watch.begin_part(1);
  CHECK(watch.ended());
}

TEST_CASE("the seconds of a search are divided among its planners") {
  const plan::Profile profile = chain(2);
  const Machine machine = two_sites(4);
  const std::vector<plan::NamedPlanner> planners = {plan::named_planner<Endless>("endless"),
                                                    plan::named_planner<OneRank>("one rank"),
                                                    plan::named_planner<Endless>("endless")};
  const plan::PlanSearch found = plan::search(
      profile, machine, {.batch = 4, .budget = {.seconds = 0.06, .steps = unlimited}}, planners);
  CHECK(found.plans()[0].found.end == plan::SearchEnd::cut_off);
  CHECK(found.plans()[1].found.end == plan::SearchEnd::complete);
  CHECK(found.plans()[2].found.end == plan::SearchEnd::cut_off);
  CHECK_THAT(text(found), ContainsSubstring("cut off: Endless, Endless; better plans") &&
                              ContainsSubstring("no plan is faster than "));
}

TEST_CASE("a limit of time does not lose the plan of a search of few steps") {
  const plan::Profile profile = chain(2);
  const Machine machine = two_sites(4);
  const std::vector<plan::NamedPlanner> unsteady = {plan::named_planner<Unsteady>("is unsteady")};
  const plan::PlanOptions options{.batch = 4};
  const plan::PlanSearch alone = plan::search(profile, machine, options, unsteady);
  REQUIRE(alone.best().stages[0].ranks[0] == Rank{7});
  plan::PlanOptions timed = options;
  timed.budget = {.seconds = 1e6, .steps = unlimited};
  const plan::PlanSearch found = plan::search(profile, machine, timed, unsteady);
  REQUIRE(found.best().stages[0].ranks[0] == Rank{0});
  REQUIRE(found.best_priced().simulated < alone.best_priced().simulated);
  // It has searched with a 64th, an eighth and all of the usual steps.
  const std::size_t usual = plan::PlanBudget{}.steps;
  REQUIRE(found.best_priced().found.candidates == usual / 64 + usual / 8 + usual);
  REQUIRE(found.best_priced().found.end == plan::SearchEnd::cut_off);
}

TEST_CASE("a progress that returns false stops the planner, and the next ones are not asked") {
  const plan::Profile profile = chain(2);
  const Machine machine = two_sites(4);
  int calls = 0;
  plan::PlanProgress last;
  const plan::PlanSearch found = plan::search(
      profile, machine,
      {.batch = 4,
       .budget = {.steps = unlimited},
       .progress =
           [&](const plan::PlanProgress& progress) {
             last = progress;
             return ++calls < 2;
           }},
      std::vector{plan::named_planner<Endless>("endless"), plan::named_planner<OneRank>("one")});
  CHECK(calls == 2);
  CHECK(last.planner == "Endless");
  CHECK(last.candidates > 0);
  CHECK(last.best == 2);
  CHECK(found.plans()[0].found.end == plan::SearchEnd::cut_off);
  CHECK(found.plans()[0].found.plan.has_value());
  CHECK(found.plans()[1].found.end == plan::SearchEnd::cut_off);
  CHECK_THAT(found.plans()[1].found.infeasible, ContainsSubstring("not asked"));
}

TEST_CASE("no plan is faster than the lower bound, which equal stages of equal layers reach") {
  int plans = 0;
  for (std::uint64_t seed = 0; seed < test::cases(100, 5000); ++seed) {
    const test::PlanCase one = test::random_plan_case(seed);
    const Machine machine = one.machine();
    const plan::PlanProblem problem(one.profile, machine, one.options);
    const Seconds bound = plan::least_step(problem);
    REQUIRE(bound > 0);
    const plan::PlanSearch found =
        plan::search(one.profile, machine, one.options, systems::planners());
    CHECK(found.bound() == bound);
    for (const plan::PricedPlan& priced : found.plans()) {
      INFO("case " << seed << ", " << priced.found.planner);
      CHECK(priced.found.end == plan::SearchEnd::complete);  // small problems are never cut off
      if (!priced.found.plan) continue;
      ++plans;
      CHECK(priced.simulated >= bound);
    }
  }
  CHECK(plans >= 300);
  const plan::ProfiledLayer layer{
      .output = 4, .saved = 4, .parameters = 4, .measured = {{"gpu", 1, 1, {1, 1, 1, 0}}}};
  const plan::Profile profile{.model = "equal", .layers = {layer}};
  const Machine machine = Machine::uniform(4, {"gpu"}, {});
  const plan::PlanProblem problem(profile, machine, {.batch = 8});
  CHECK(plan::least_step(problem) >= 6 * (1 - 1e-9));
  CHECK(plan::search(profile, machine, {.batch = 8}, systems::planners()).best_priced().simulated ==
        6);
}

TEST_CASE("the default budget changes no plan of up to 12 layers on up to 8 ranks") {
  int plans = 0;
  const plan::PlanBudget none{.bytes = std::numeric_limits<Bytes>::max(), .steps = unlimited};
  for (std::uint64_t seed = 0; seed < test::cases(12, 1000); ++seed) {
    test::PlanCase one = test::random_plan_case(seed, 12, 8);
    const Machine machine = one.machine();
    const plan::PlanSearch within =
        plan::search(one.profile, machine, one.options, systems::planners());
    one.options.budget = none;
    const plan::PlanSearch all =
        plan::search(one.profile, machine, one.options, systems::planners());
    for (std::size_t p = 0; p < all.plans().size(); ++p) {
      INFO("case " << seed << ", " << all.plans()[p].found.planner);
      // DAPPLE and PipeDream have limits on candidates besides the budget.
      CHECK(within.plans()[p].found.end == all.plans()[p].found.end);
      CHECK(within.plans()[p].found.plan == all.plans()[p].found.plan);
      plans += all.plans()[p].found.plan.has_value();
    }
  }
  CHECK(plans >= 40);
}

TEST_CASE("every planner ends within few steps on a large problem, with equal plans each time") {
  const plan::Profile profile = chain(60);
  const Machine machine = two_sites(64, 1'000'000);
  for (const std::uint64_t steps : {100'000u, 10'000'000u}) {
    const plan::PlanOptions options{.batch = 256, .budget = {.steps = steps}};
    const plan::PlanSearch found = plan::search(profile, machine, options, systems::planners());
    int cut_off = 0;
    for (const plan::PricedPlan& priced : found.plans()) {
      cut_off += priced.found.end == plan::SearchEnd::cut_off;
      CHECK(priced.found.end != plan::SearchEnd::failed);
      if (priced.found.plan) CHECK(priced.simulated >= found.bound());
    }
    CHECK(cut_off >= 2);
    CHECK_NOTHROW(found.best());
    if (steps > 1'000'000) continue;
    const plan::PlanSearch again = plan::search(profile, machine, options, systems::planners());
    for (std::size_t p = 0; p < found.plans().size(); ++p)
      CHECK(found.plans()[p].found.plan == again.plans()[p].found.plan);
  }
}

}  // namespace test_search_budget
