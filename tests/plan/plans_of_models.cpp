// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors

// DAPPLE's and PipeDream's plans of published models, on the machines of their papers. The profiles
// are computed from the models' shapes. docs/systems.md says what those that the authors of DAPPLE
// measured give instead.

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <string>

#include <catch2/catch_test_macros.hpp>

#include <heddle/schedule.hpp>
#include <heddle/systems/dapple/dapple.hpp>
#include <heddle/systems/pipedream/pipedream.hpp>

#include "plan/model_plans.hpp"
#include "plan/model_profiles.hpp"

namespace test_plans_of_models {

using namespace heddle;

TEST_CASE("DAPPLE divides five models 8:8 and VGG19 15:1 over two nodes of eight") {
  const Machine machine = test::v100_nodes(2, 8, 25e9, 3e9);
  for (const test::ModelBatch& model : test::dapple_models()) {
    const plan::PlanProblem problem(
        model.profile, machine,
        {.batch = 64 * model.samples, .microbatches = {64}, .schedule = "dapple"});
    const plan::FoundPlan found = systems::Dapple{}.search(problem);
    REQUIRE(found.plan.has_value());
    INFO(model.profile.model << ": " << *found.plan);
    CHECK(test::ranks_of_stages(*found.plan) == model.published);
    CHECK(found.formula == systems::Dapple{}.formula(*found.plan, problem));

    // The formula and the simulator agree, if transfers are stages, as in policy B.
    const Seconds simulated = plan::simulated_step(*found.plan, problem);
    INFO("formula " << found.formula << " s, simulated " << simulated << " s");
    CHECK(std::abs(found.formula / simulated - 1) <= 0.03);

    const plan::FoundPlan theirs = systems::PipeDream{}.search(problem);
    REQUIRE(theirs.plan.has_value());
    INFO("PipeDream: " << *theirs.plan);
    CHECK(systems::Dapple{}.formula(*theirs.plan, problem) >= found.formula);
  }
}

TEST_CASE("a microbatch that 15 ranks do not divide equally has another plan") {
  // 32 images on 15 ranks: three on most of them, as on 11 ranks.
  const plan::Profile model = test::vgg19();
  const Machine machine = test::v100_nodes(2, 8, 25e9, 3e9);
  const plan::PlanProblem problem(model, machine,
                                  {.batch = 64 * 32, .microbatches = {64}, .schedule = "dapple"});
  const auto found = systems::Dapple{}.search(problem);
  REQUIRE(found.plan.has_value());
  CHECK(found.plan->stages.front().ranks.size() == 11);
}

namespace {

/// A step of data parallelism by hand: F + B of the largest share of 32 samples, and PipeDream's
/// sums of gradients inside of each node and between the nodes, for each of 64 microbatches.
Seconds data_parallel_by_hand(const test::Cluster& cluster) {
  const plan::Profile model = test::vgg19();
  const LayerRange all{0, static_cast<int>(model.layers.size())};
  const int ranks = cluster.nodes * cluster.ranks;
  const auto times = model.times(all, {.name = "V100"}, 1, (32 + ranks - 1) / ranks);
  const auto weights = static_cast<double>(model.parameters(all));
  const double inside =
      4 * (cluster.ranks - 1) * weights / (cluster.inside * cluster.ranks) / ranks;
  const double between =
      4 * (cluster.nodes - 1) * weights / (cluster.between * ranks) / cluster.nodes;
  return 64 * (times.forward + times.backward_input + times.backward_weight + inside + between);
}

}  // namespace

TEST_CASE("PipeDream's plan of VGG19 outruns data parallelism on three clusters") {
  for (const test::Cluster& cluster : test::pipedream_clusters()) {
    const test::PipeDreamComparison run = test::compare_pipedream(cluster);
    INFO(cluster.name << ": " << run.plan);
    // Data parallelism is one of the plans from which the least time is chosen, so a gain of 1 is
    // no result: its time is checked by hand, and the plan must be another one.
    CHECK(std::abs(run.data_parallel / data_parallel_by_hand(cluster) - 1) < 1e-12);
    CHECK(run.plan.stages.size() > 1);
    CHECK(run.data_parallel / run.pipeline > cluster.least_gain);
    // Bytes by the schedules' moves, and by closed forms.
    CHECK(run.counted_bytes == run.expected_bytes);
    CHECK(run.counted_data_parallel == run.expected_data_parallel);
    // Between nodes it sends less than half; inside of nodes it may send more.
    CHECK(run.between_nodes < run.data_parallel_between_nodes / 2);
  }
}

TEST_CASE("a model that fits no rank is refused with the rank and the bytes that it lacks") {
  plan::Profile model = test::vgg19();
  Machine machine = Machine::uniform(
      2, {.name = "V100", .memories = {{.name = "HBM", .capacity = 1'000'000'000}}},
      {.bandwidth = 25e9});
  const plan::PlanProblem problem(model, machine, {.batch = 8, .microbatches = {8}});
  // The layer fc4096 alone has 102,764,544 weights and biases, of 16 bytes with Adam.
  const Bytes least = 16 * Bytes{102'764'544} - 1'000'000'000;
  for (const std::string& why : {systems::Dapple{}.search(problem).infeasible,
                                 systems::PipeDream{}.search(problem).infeasible}) {
    INFO(why);
    const std::size_t lacks = why.find(" lacks ");
    REQUIRE(why.starts_with("rank "));
    REQUIRE(lacks != std::string::npos);
    CHECK(std::stoull(why.substr(lacks + 7)) >= least);
    CHECK(std::stoull(why.substr(lacks + 7)) <= least + 2'000'000'000);
  }
}

TEST_CASE("memory decides between plans") {
  // BERT-48 with Adam has 10.2 GB of state. One rank of 7 GB cannot hold it, two stages can.
  const plan::Profile model = test::bert(48);
  for (const Bytes gigabytes : {Bytes{7}, Bytes{80}}) {
    const Machine machine = Machine::uniform(
        4, {.name = "V100", .memories = {{.name = "HBM", .capacity = gigabytes * 1'000'000'000}}},
        {.bandwidth = 100e9});
    const plan::PlanProblem problem(model, machine, {.batch = 32, .microbatches = {8}});
    for (const plan::FoundPlan& found :
         {systems::Dapple{}.search(problem), systems::PipeDream{}.search(problem)}) {
      INFO(found.planner << " with " << gigabytes << " GB: " << found.infeasible);
      REQUIRE(found.plan.has_value());
      CHECK_FALSE(plan::memory_shortage(*found.plan, problem).has_value());
      CHECK((gigabytes == 80 || found.plan->stages.size() >= 2));
    }
  }
}

}  // namespace test_plans_of_models
