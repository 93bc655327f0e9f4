// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
// ranks: 2 3 4

// The GPT trained by an AdaptiveRunner while one rank turns slow and recovers, against the same
// training by one plan: the plan changes there and back. Losses are equal bit by bit while no stage
// has replicas, and within 1e-10 from then on.

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include <catch2/catch_test_macros.hpp>
#include <catch2/generators/catch_generators.hpp>
#include <catch2/matchers/catch_matchers_floating_point.hpp>
#include <mpi.h>

#include <heddle/comm/replan.hpp>
#include <heddle/execute/adaptive_runner.hpp>
#include <heddle/heddle.hpp>
#include <heddle/plan.hpp>

#include "gpt_training.hpp"
#include "support/on_all_ranks.hpp"
#include "support/rounds.hpp"
#include "support/sleep_noise.hpp"
#include "support/world.hpp"

namespace test_replan_training {

namespace hd = heddle;
using namespace examples;
using hd::test::world_rank;
using hd::test::world_size;

namespace {

constexpr int layers = 6, microbatches = 4;
constexpr int sequences = 2;        ///< of a microbatch
constexpr hd::Seconds wait = 2e-3;  ///< of the forward of a layer; the backward takes two of them
constexpr int every = 2;            ///< the number of steps between two looks
constexpr double least_factor = 3;  ///< other programs delay waits, but not so much

/// Runs step number `number`. Returns false on all ranks if a look observes this step, and delays
/// by other programs alone may make a rank look slow. A sleep is late for this if its delay alone
/// would make the forward of a layer look slow (decision 110).
bool quiet_beside(int number, auto&& step) {
  if (number % every != every - 1) {
    step();
    return true;
  }
  hd::test::SleepNoise delays((least_factor - 1) * wait);
  step();
  return hd::test::on_all_ranks(delays.end().quiet());
}

GptTraining small() {
  GptTraining training;
  training.model = {
      .layers = layers, .width = 16, .heads = 2, .context = 8, .sequences = sequences};
  training.microbatches = microbatches;
  training.optimizer.learning_rate = 1e-2;
  return training;
}

hd::plan::Profile waits() {
  hd::plan::Profile profile{.model = "gpt", .input = 4, .layers = {}, .reference = "rank"};
  profile.layers.assign(layers, {.name = "block",
                                 .output = 4,
                                 .saved = 4,
                                 .parameters = 4,
                                 .measured = {{"rank", 1, sequences, {wait, wait, wait, 0}}}});
  return profile;
}

/// A pipeline: a stage on each rank, with as many layers as the others or one more.
hd::Plan line_of(int count, int items, int samples) {
  hd::Plan plan{.microbatches = items};
  const int ranks = world_size();
  for (int r = 0, layer = 0; r < ranks; ++r) {
    const int own = count / ranks + (r < count % ranks ? 1 : 0);
    plan.stages.push_back(
        {.layers = {layer, layer + own}, .ranks = {hd::Rank{r}}, .samples = {samples}});
    layer += own;
  }
  return plan;
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
      .search = {.batch = microbatches * sequences, .microbatches = {microbatches}}};
  options.monitor.least = least_factor;
  options.candidates = [](const hd::plan::PlanProblem& problem, const hd::Plan& present) {
    std::vector<hd::Plan> plans{line_of(layers, microbatches, sequences)};
    if (!present.stages.empty()) plans.push_back(hd::plan::rebalanced(present, problem));
    return plans;
  };
  hd::AdaptiveRunner run(
      ours, hd::plan::PlanChoice(waits(), machine, options), mesh,
      {.run = {.execute = {.idle = hd::Idle::nap}}, .every = every, .steps = 1000});
  hd::Runner fixed(theirs,
                   hd::schedule::one_f_one_b({.ranks = world_size(), .microbatches = microbatches}),
                   other, {.execute = {.idle = hd::Idle::nap}});
  const hd::Plan first = run.plan();
  std::vector<hd::Plan> taken;
  hd::Bytes migrated = 0;
  bool quiet = true;  // beside all looks
  for (int step = 0; step < 24; ++step) {
    ours.slowness = world_rank() == 1 && step >= 6 && step < 16 ? 6 : 1;
    if (run.look()) {
      taken.push_back(run.plan());
      migrated += ours.migrated().bytes;
    }
    const auto tokens = batch(training, words, step, 0);
    double loss = 0;
    quiet = quiet_beside(step, [&] { loss = run.step(tokens, weight(training)).loss; }) && quiet;
    INFO("step " << step << ", " << run.plan());
    REQUIRE(loss == fixed.step(tokens, weight(training)).loss);
  }
  CHECK(gather<double>(ours, mesh, [](auto& stage) { return stage.parameters(); }) ==
        gather<double>(theirs, other, [](auto& stage) { return stage.parameters(); }));
  if (!quiet) SKIP(hd::test::no_result);
  REQUIRE(taken.size() >= 2);
  CHECK(taken.front() != first);
  CHECK(taken.front().stages[1].layers.size() == 1);
  CHECK(taken.back() == first);
  CHECK(migrated > 0);
}

namespace {

constexpr int wide_layers = 8, samples = 8;

GptTraining wide() {
  GptTraining training = small();
  training.model.layers = wide_layers;
  training.model.sequences = samples;
  training.microbatches = 3;
  return training;
}

/// Two stages, or one of two ranks. Rank 1 has one sample of eight.
hd::Plan replicas_on(int ranks, const std::string& sharding = {}) {
  using hd::Rank;
  hd::Plan plan{.microbatches = 3, .sharding = sharding};
  if (ranks == 2) plan.stages = {{{0, 8}, {Rank{0}, Rank{1}}, {7, 1}}};
  if (ranks == 3) plan.stages = {{{0, 4}, {Rank{2}, Rank{1}}, {7, 1}}, {{4, 8}, {Rank{0}}, {8}}};
  if (ranks == 4)
    plan.stages = {{{0, 4}, {Rank{3}, Rank{1}}, {7, 1}}, {{4, 8}, {Rank{0}, Rank{2}}, {7, 1}}};
  return plan;
}

/// The bytes that a change of the plan moves: weights and two moments of each parameter, which a
/// sharding divides, and the number of steps of each layer, which it does not.
hd::Bytes migrated_bytes(const GptTraining& training, hd::Plan before, hd::Plan after) {
  constexpr hd::Bytes each = 3 * sizeof(double);
  std::vector<hd::Bytes> sizes;
  for (int l = 0; l < wide_layers; ++l)
    sizes.push_back(each * GptStage<double>(training.model, l, l + 1).parameter_count());
  hd::Bytes bytes =
      hd::plan::moved(hd::plan::migration(before, after, sizes, world_size(), each)).bytes;
  before.sharding = after.sharding = {};
  const std::vector<hd::Bytes> steps(wide_layers, sizeof(std::int64_t));
  return bytes + hd::plan::moved(hd::plan::migration(before, after, steps, world_size())).bytes;
}

hd::plan::Profile wide_waits() {
  constexpr hd::Seconds each = 2.5e-4;  // of the forward of a layer and a sample
  hd::plan::Profile profile = waits();
  profile.layers.assign(wide_layers, profile.layers[0]);
  for (hd::plan::ProfiledLayer& layer : profile.layers)
    layer.measured = {{"rank", 1, 1, {each, each, each, 0}}};
  return profile;
}

/// The GPT, which waits longer than it computes: so long as a plan's costs say, times `slowness`.
struct PlannedSlowGpt : Gpt<double> {
  explicit PlannedSlowGpt(const GptTraining& training)
      : Gpt<double>(make_planned_gpt<double>(training)) {}

  std::vector<hd::plan::RankCosts> costs = {};
  double slowness = 1;

  void begin_plan(const hd::Plan& next) {
    costs.assign(1, hd::plan::costs(next, wide_waits(),
                                    hd::Machine::uniform(world_size(), {.name = "rank"}, {})));
    Gpt<double>::begin_plan(next);
  }
  void operator()(const hd::Task& task) {
    Gpt<double>::operator()(task);
    if (task.kind() <= hd::Kind::backward)
      std::this_thread::sleep_for(
          std::chrono::duration<double>(slowness * costs[0].time(task.schedule(), task.id())));
  }
};

double planned_step(auto& run, const GptTraining& training, const Text& words, int step,
                    hd::SampleRange own) {
  return run
      .step(batch_of(training, words, step, own),
            static_cast<double>(own.size()) / training.batch())
      .loss;
}

}  // namespace

TEST_CASE("the GPT trains on while its stages get replicas, and loses them again") {
  using Catch::Matchers::WithinRel;
  const Text words = Text::load({}, 64);
  const GptTraining training = wide();
  const std::string sharding = world_size() == 4 ? "zero1" : "";
  const hd::Plan line = line_of(wide_layers, 3, samples),
                 replicas = replicas_on(world_size(), sharding);
  hd::DeviceMesh mesh(MPI_COMM_WORLD, {{"pipe", world_size()}});
  auto theirs = make_gpt<double>(training);
  hd::Runner fixed(theirs, hd::schedule::one_f_one_b({.ranks = world_size(), .microbatches = 3}),
                   mesh, {.execute = {.idle = hd::Idle::nap}});
  PlannedSlowGpt ours(training);
  const hd::Machine machine = hd::Machine::uniform(world_size(), {.name = "rank"}, {});
  hd::plan::PlanChoiceOptions options{.search = {.batch = 3 * samples, .microbatches = {3}}};
  options.monitor.least = least_factor;
  options.candidates = hd::plan::fixed_plans({line, replicas});
  hd::AdaptiveRunner run(
      ours, hd::plan::PlanChoice(wide_waits(), machine, options), MPI_COMM_WORLD,
      {.run = {.execute = {.idle = hd::Idle::nap}}, .every = every, .steps = 1000});
  REQUIRE(run.plan() == line);
  std::vector<hd::Plan> taken;
  bool quiet = true;  // beside all looks
  for (int step = 0; step < 22; ++step) {
    ours.slowness = world_rank() == 1 && step >= 4 && step < 12 ? 6 : 1;
    const hd::Plan before = run.plan();
    if (run.look()) {
      taken.push_back(run.plan());
      CHECK(ours.migrated().bytes == migrated_bytes(training, before, run.plan()));
    }
    double loss = 0;
    quiet = quiet_beside(
                step,
                [&] { loss = planned_step(run, training, words, step, run.place().samples()); }) &&
            quiet;
    INFO("step " << step << ", " << run.plan());
    const auto tokens = batch(training, words, step, 0);
    const double expected = fixed.step(tokens, weight(training)).loss;
    if (taken.empty())
      REQUIRE(loss == expected);
    else
      REQUIRE_THAT(loss, WithinRel(expected, 1e-10));
  }
  if (!quiet) SKIP(hd::test::no_result);
  REQUIRE(taken.size() >= 2);
  CHECK(taken.front() == replicas);
  CHECK(taken.back() == line);
}

TEST_CASE("the GPT goes through plans with and without shardings, and its state with it") {
  using Catch::Matchers::WithinRel;
  const bool tied = GENERATE(false, true);
  const Text words = Text::load({}, 64);
  GptTraining training = wide();
  training.model.tied = tied;
  SerialGpt<double> serial(training);
  hd::PlannedMesh places(MPI_COMM_WORLD);
  auto model = make_planned_gpt<double>(training);
  const int ranks = world_size();
  const hd::Plan line = line_of(wide_layers, 3, samples);
  hd::Plan other = replicas_on(ranks, "zero1");
  for (hd::PlanStage& stage : other.stages)  // other shares of the same ranks
    if (stage.groups() == 2) stage.samples = {3, 5};
  hd::Plan before;
  int step = 0;
  for (const hd::Plan& plan : {line, replicas_on(ranks), replicas_on(ranks, "zero1"), other, line,
                               replicas_on(ranks, "zero3"), replicas_on(ranks), line}) {
    INFO(plan);
    places.begin_plan(plan);
    model.begin_plan(plan);
    hd::Runner run(model, hd::plan::schedule(plan, wide_waits(), {.ranks = ranks}), places);
    if (step > 0 && !tied) CHECK(model.migrated().bytes == migrated_bytes(training, before, plan));
    for (int each = 0; each < 2; ++each, ++step)
      REQUIRE_THAT(planned_step(run, training, words, step, places.samples()),
                   WithinRel(serial.step(words, step), 1e-10));
    run.drain();
    before = plan;
  }
}

}  // namespace test_replan_training
