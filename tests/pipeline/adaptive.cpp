// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
// ranks: 1 2 4

// The GPT trained by a schedule that changes while it trains, against the same training by 1F1B:
// what a model has learned outlives the schedule that taught it, with replicas, too.

#include <cstddef>
#include <vector>

#include <catch2/catch_test_macros.hpp>
#include <mpi.h>

#include <heddle/execute/adaptive_runner.hpp>
#include <heddle/heddle.hpp>
#include <heddle/plan/schedule_choice.hpp>
#include <heddle/schedule/generator/kfkb.hpp>

#include "gpt_training.hpp"
#include "support/world.hpp"

namespace test_adaptive {

namespace hd = heddle;
using namespace examples;
using hd::test::world_size;

namespace {

GptTraining small(int replicas) {
  GptTraining training;
  training.model = {.layers = 5, .width = 16, .heads = 2, .context = 8, .sequences = 2};
  training.microbatches = 6;
  training.replicas = replicas;
  training.optimizer.learning_rate = 1e-2;
  return training;
}

/// 1F1B in groups of 1, 2 and 3. What they need only the stages know.
std::vector<hd::Schedule> candidates(int pipe) {
  std::vector<hd::Schedule> result;
  for (const int k : {1, 2, 3})
    result.push_back(hd::schedule::kfkb({.ranks = pipe, .microbatches = 6, .group = k}));
  return result;
}

}  // namespace

TEST_CASE("a schedule that changes trains bit by bit as one that does not") {
  const Text words = Text::load({}, 64);
  for (int pipe = 1; pipe <= world_size(); ++pipe) {
    if (world_size() % pipe != 0) continue;
    const GptTraining training = small(world_size() / pipe);
    hd::DeviceMesh mesh(MPI_COMM_WORLD, {{"pipe", pipe}, {"data", training.replicas}});
    auto ours = make_gpt<double>(training, {});
    auto theirs = make_gpt<double>(training, {});
    const auto all = candidates(pipe);
    hd::AdaptiveRunner adaptive(ours, hd::plan::ScheduleChoice({all[2], all[1], all[0]}), mesh,
                                {.every = 2});
    hd::Runner fixed(theirs, all[0], mesh);
    const std::vector<hd::Bytes> needs(adaptive.choice().needs().begin(),
                                       adaptive.choice().needs().end());
    CHECK(needs[0] >= needs[1]);  // with 4 ranks the 6 microbatches are all under way
    CHECK(needs[1] > needs[2]);
    CHECK(needs[2] > 0);
    for (int step = 0; step < 12; ++step) {
      // Room for all of them, for two, for one, for all.
      adaptive.limit(needs[static_cast<std::size_t>(step / 3 % 3)]);
      const auto tokens = batch(training, words, step, mesh.coordinate("data"));
      const double loss = adaptive.step(tokens, weight(training)).loss;
      INFO(adaptive.choice().schedule().name() << ", step " << step);
      REQUIRE(loss == fixed.step(tokens, weight(training)).loss);
      REQUIRE(adaptive.runner().schedule().ranks() == world_size());
    }
    // Replicas or not, it has learned what the pipeline takes.
    const hd::plan::ObservedCosts& costs = adaptive.choice().costs();
    for (int stage = 0; stage + 1 < pipe; ++stage)
      CHECK(costs.between(hd::Stage{stage}, hd::Stage{stage + 1}) > 0);
    CHECK(adaptive.choice().predicted()[0] > 0);
  }
}

}  // namespace test_adaptive
