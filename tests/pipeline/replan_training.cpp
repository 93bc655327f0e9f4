// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
// ranks: 2 3 4

// The GPT trained by a Replanner while one rank turns slow and recovers, against the same training
// by one plan: the plan changes there and back, and losses are equal bit by bit.

#include <chrono>
#include <cstddef>
#include <thread>
#include <utility>
#include <vector>

#include <catch2/catch_test_macros.hpp>
#include <mpi.h>

#include <heddle/heddle.hpp>

#include "gpt_training.hpp"
#include "support/world.hpp"

namespace test_replan_training {

namespace hd = heddle;
using namespace examples;
using hd::test::world_rank;
using hd::test::world_size;

namespace {

constexpr int layers = 6, microbatches = 4;
constexpr hd::Seconds wait = 2e-3;  ///< of the forward of a layer; the backward takes two of them

GptTraining small() {
  GptTraining training;
  training.model = {.layers = layers, .width = 16, .heads = 2, .context = 8, .sequences = 2};
  training.microbatches = microbatches;
  training.optimizer.learning_rate = 1e-2;
  return training;
}

hd::Profile waits() {
  hd::Profile profile{.model = "gpt", .input = 4, .layers = {}, .reference = "rank"};
  profile.layers.assign(layers, {.name = "block",
                                 .output = 4,
                                 .saved = 4,
                                 .parameters = 4,
                                 .measured = {{"rank", 1, 1, {wait, wait, wait, 0}}}});
  return profile;
}

/// The GPT, which waits longer than it computes: so long as the profile says, times `slowness`.
struct SlowGpt : Gpt<double> {
  explicit SlowGpt(const GptTraining& training) : Gpt<double>(make_gpt<double>(training)) {}

  hd::Plan plan = {};
  double slowness = 1;

  void begin_plan(const hd::Plan& next) {
    plan = next;
    Gpt<double>::begin_plan(next);
  }
  void operator()(const hd::Task& task) {
    Gpt<double>::operator()(task);
    if (task.kind() > hd::Kind::backward) return;
    const double times = task.kind() == hd::Kind::backward ? 2 : 1;
    std::this_thread::sleep_for(std::chrono::duration<double>(
        wait * times * slowness * plan.stages[+task.stage()].layers.size()));
  }
};

}  // namespace

TEST_CASE("the GPT trains bit by bit the same while its plan changes there and back") {
  const Text words = Text::load({}, 64);
  const GptTraining training = small();
  hd::DeviceMesh mesh(MPI_COMM_WORLD, {{"pipe", world_size()}});
  hd::DeviceMesh other(MPI_COMM_WORLD, {{"pipe", world_size()}});
  SlowGpt ours(training);
  auto theirs = make_gpt<double>(training);
  const hd::Machine machine = hd::Machine::uniform(world_size(), {.name = "rank"}, {});
  hd::plan::PlanChoiceOptions options{
      .search = {.batch = microbatches, .microbatches = {microbatches}}};
  options.monitor.least = 3;  // other programs delay waits, but not so much
  hd::Replanner run(ours, hd::plan::PlanChoice(waits(), machine, options), mesh,
                    {.run = {.execute = {.idle = hd::Idle::nap}}, .every = 2, .steps = 1000});
  hd::Runner fixed(
      theirs, hd::schedule::one_f_one_b({.stages = world_size(), .microbatches = microbatches}),
      other, {.execute = {.idle = hd::Idle::nap}});
  const hd::Plan first = run.plan();
  std::vector<hd::Plan> taken;
  hd::Bytes migrated = 0;
  for (int step = 0; step < 24; ++step) {
    ours.slowness = world_rank() == 1 && step >= 6 && step < 16 ? 6 : 1;
    if (run.look()) {
      taken.push_back(run.plan());
      migrated += ours.migrated().bytes;
    }
    const auto tokens = batch(training, words, step, 0);
    const double loss = run.step(tokens, weight(training)).loss;
    INFO("step " << step << ", " << run.plan());
    REQUIRE(loss == fixed.step(tokens, weight(training)).loss);
  }
  CHECK(gather<double>(ours, mesh, [](auto& stage) { return stage.parameters(); }) ==
        gather<double>(theirs, other, [](auto& stage) { return stage.parameters(); }));
  REQUIRE(taken.size() >= 2);
  CHECK(taken.front() != first);
  CHECK(taken.front().stages[1].layers.size() == 1);
  CHECK(taken.back() == first);
  CHECK(migrated > 0);
}

}  // namespace test_replan_training
