// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors

// The planner Frontier3D on a described Frontier: the degrees that it chooses for three models, the
// rules of the published study, and how near a partial search comes to the whole one.

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <vector>

#include <catch2/catch_approx.hpp>
#include <catch2/catch_test_macros.hpp>

#include <heddle/machine/machine.hpp>
#include <heddle/plan/plan_problem.hpp>
#include <heddle/plan/profile.hpp>
#include <heddle/schedule/plan.hpp>
#include <heddle/systems/frontier_3d/frontier.hpp>

#include "support/frontier_model.hpp"

namespace test_frontier {

using namespace heddle;
using namespace heddle::test;
using plan::PlanProblem;
using systems::Frontier3D;

TEST_CASE("tensor groups of the best plans for 22B, 175B and 1T stay within a node") {
  for (const FrontierModel& model : frontier_models) {
    const plan::Profile profile = gpt(model.layers, model.hidden);
    const Machine machine = frontier(model.ranks);
    const PlanProblem problem(profile, machine,
                              {.batch = model.batch,
                               .microbatches = {32, 64, 128, 256, 512},
                               .state_per_parameter = adam_state});
    const plan::FoundPlan found = Frontier3D{}.search(problem);
    INFO(profile << machine << found.infeasible);
    REQUIRE(found.plan);
    check(*found.plan, model.layers, model.ranks);
    CHECK(found.formula == Frontier3D{}.formula(*found.plan, problem));
    CHECK_FALSE(plan::memory_shortage(*found.plan, problem));
    CHECK(found.plan->stages.front().tensor <= 8);
    const double parameters = 12.0 * model.layers * model.hidden * model.hidden;
    CHECK(parameters == Catch::Approx(model.parameters).epsilon(0.03));
    const double share = share_of_peak(model, found.formula);
    CHECK(share < 0.5);  // the products' own rate
    UNSCOPED_INFO(found.plan->stages.front().tensor
                  << " tensor, " << found.plan->stages.size() << " stages, "
                  << found.plan->microbatches << " microbatches, recompute "
                  << found.plan->stages.front().recompute << ", " << found.plan->sharding
                  << ": share of peak " << share << " after " << found.candidates << " plans");
    CHECK(share > 0.25);
  }
}

TEST_CASE("the rules of the study on Frontier hold for the formula") {
  const plan::Profile profile = gpt(96, 12288);
  const Machine machine = frontier(512);
  const PlanProblem problem(profile, machine, {.batch = 1024, .state_per_parameter = adam_state});
  const auto rate = [&](const Plan& plan) {  // samples a second and rank
    double ranks = 0;
    for (const PlanStage& stage : plan.stages) ranks += static_cast<double>(stage.ranks.size());
    return static_cast<double>(plan.batch()) / Frontier3D{}.formula(plan, problem) / ranks;
  };
  // A tensor degree beyond the node is slower, at equal ranks and batch.
  CHECK(rate(uniform_plan(problem, 16, 16, 2, 32, 1)) <
        rate(uniform_plan(problem, 8, 16, 4, 16, 1)));
  // More microbatches help.
  double before = 0;
  for (const int microbatches : {8, 16, 32, 64, 128}) {
    const double now = rate(uniform_plan(problem, 4, 16, 8, microbatches, 1));
    CHECK(now > before);
    before = now;
  }
  // More stages hurt at a fixed batch on ranks in proportion.
  before = std::numeric_limits<double>::infinity();
  for (const int stages : {4, 8, 16, 32}) {
    const double now = rate(uniform_plan(problem, 4, stages, 4, 32, 1));
    CHECK(now < before);
    before = now;
  }
  // At a fixed ratio of stages to microbatches, the rate stays.
  const double base = rate(uniform_plan(problem, 4, 8, 4, 64, 1));
  for (const int stages : {16, 32})
    CHECK(rate(uniform_plan(problem, 4, stages, 4, 8 * stages, 1)) ==
          Catch::Approx(base).epsilon(0.03));
  // Weak scaling: twice the groups and the batch.
  CHECK(rate(uniform_plan(problem, 4, 16, 8, 64, 1)) >=
        0.97 * rate(uniform_plan(problem, 4, 16, 4, 64, 1)));
}

TEST_CASE("a search of a part of the grid comes near the whole one") {
  const plan::Profile profile = gpt(48, 6144);
  const Machine machine = frontier(64);
  const PlanProblem problem(profile, machine, {.batch = 1024, .state_per_parameter = adam_state});
  const plan::FoundPlan all = Frontier3D{.exhaustive = 100'000}.search(problem);
  REQUIRE(all.plan);
  std::vector<double> ratios;
  for (std::uint64_t seed = 0; seed < 20; ++seed) {
    const plan::FoundPlan part = Frontier3D{.seed = seed}.search(problem);
    REQUIRE(part.plan);
    REQUIRE(part.candidates < all.candidates);
    ratios.push_back(part.formula / all.formula);
  }
  std::sort(ratios.begin(), ratios.end());
  CHECK(ratios.front() >= 1);
  CHECK(ratios[18] <= 1.05);  // 95 %
  CHECK(ratios[19] <= 1.10);
}

TEST_CASE("sequences are divided where that is faster than fewer ranks") {
  // One sample of 8 s forward and 16 s backward in each microbatch, so that only sequences can be
  // divided; one layer, so that there is one stage.
  const auto problem_of = [](const plan::Profile& profile, const Machine& machine,
                             SequenceMethod method, std::vector<int> degrees) {
    return PlanProblem(profile, machine,
                       {.batch = 4,
                        .microbatches = {4},
                        .sequence_degrees = std::move(degrees),
                        .attention = method});
  };
  const auto profile_of = [](Bytes keys) {
    return plan::Profile{
        .layers = {{.parameters = 40, .measured = {{"gpu", 1, 1, {8, 8, 8, 0}}}, .keys = keys}}};
  };
  const Machine machine = Machine::uniform(4, {"gpu"}, {0, 100});
  const plan::Profile cheap = profile_of(40), dear = profile_of(100'000);
  using enum SequenceMethod;
  for (const SequenceMethod method : {ring, ulysses}) {
    CAPTURE(method);
    const PlanProblem problem = problem_of(cheap, machine, method, {1, 2, 4});
    const plan::FoundPlan found = Frontier3D{}.search(problem);
    REQUIRE(found.plan);
    CHECK(found.plan->stages.front().sequence == 4);
    CHECK(found.plan->attention == method);
    check(*found.plan, 1, 4);
    // A quarter of 24 s. A ring takes 3 blocks of 10 bytes forward and 4 backward; by heads, each
    // pass sends 60 / 16 bytes to each rank and 20 / 16 back. Gradients: 6 messages of 10 bytes.
    const double keys = method == ring ? 0.7 : 2 * (60 + 20) / 16 / 100.0;
    CHECK(found.formula == Catch::Approx(4 * (6 + keys) + 0.6).epsilon(1e-12));
    CHECK(plan::simulated_step(*found.plan, problem) ==
          Catch::Approx(found.formula).epsilon(1e-12));
  }
  // Keys that take longer than computation: a single rank of four would be idle three times, and
  // there is no uniform plan for whole sequences.
  CHECK_FALSE(Frontier3D{}.search(problem_of(cheap, machine, ring, {1})).plan);
  // Two samples in a microbatch: whole sequences if keys are dear.
  const auto degree = [&](const plan::Profile& profile) {
    const Machine two = Machine::uniform(2, {"gpu"}, {0, 100});
    const PlanProblem problem(profile, two,
                              {.batch = 8, .microbatches = {4}, .sequence_degrees = {1, 2}});
    return Frontier3D{}.search(problem).plan->stages.front().sequence;
  };
  CHECK(degree(dear) == 1);
  CHECK(degree(cheap) == 1);  // nothing to win
  CHECK_THROWS_AS(problem_of(profile_of(0), machine, ring, {1, 2}), contract_error);
  CHECK_THROWS_AS(problem_of(cheap, machine, ring, {0}), contract_error);
}

TEST_CASE("a model that fits no rank is infeasible, and so are sizes that do not divide") {
  const plan::Profile profile = gpt(4, 25600);
  const Device gcd{.name = "gcd", .memories = {{"HBM", Bytes{64'000'000'000}}}};
  const Machine machine = Machine::uniform(2, gcd, {2e-6, 75e9});
  const plan::FoundPlan none =
      Frontier3D{}.search(PlanProblem(profile, machine, {.batch = 8, .state_per_parameter = 8}));
  CHECK_FALSE(none.plan);
  CHECK(none.infeasible.find("bytes and has 64000000000") != std::string::npos);
  const plan::Profile small = gpt(2, 64);
  const Machine three = Machine::uniform(3, gcd, {2e-6, 75e9});
  const plan::FoundPlan odd = Frontier3D{}.search(PlanProblem(small, three, {.batch = 4}));
  CHECK_FALSE(odd.plan);
  CHECK(odd.infeasible == "no degrees divide 3 ranks, 2 layers and 4 samples equally");
}

}  // namespace test_frontier
