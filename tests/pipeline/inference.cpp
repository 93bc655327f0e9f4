// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
// space: its own

// Stages run forward only: EnergonAI's pipeline and others over ranks and threads, bitwise as the
// whole model on one rank.

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>
#include <mpi.h>

#include <heddle/heddle.hpp>
#include <heddle/systems/energonai/energon.hpp>

#include "support/complaint.hpp"
#include "support/mlp_stage.hpp"
#include "support/world.hpp"

namespace test_inference {

namespace hd = heddle;
using Catch::Matchers::ContainsSubstring;
using hd::test::MlpStage;
using hd::test::world_size;

namespace {

/// A stage of a model of `layers` layers that ends in its loss, or in the output of the last layer.
MlpStage stage_of(int first, int last, int layers, bool has_loss) {
  return {first, last, has_loss ? layers : layers + 1, 0.5};
}

/// What the whole model makes of microbatch `item`; with a loss, that.
std::vector<double> serial(int layers, bool has_loss, int step, int first, int item) {
  MlpStage whole = stage_of(0, layers, layers, has_loss);
  whole.begin_step(step, first, 1.0);
  std::vector<double> output(MlpStage::activation), saved(whole.saved_size());
  whole.forward({.item = hd::Item{item}, .output = output.data(), .saved = saved.data()});
  return has_loss ? std::vector{whole.loss(hd::Item{item})} : output;
}

/// Two steps on `place`, whose microbatches begin with number `first`; throws where an output of
/// this rank or the sum of the losses is not the serial model's.
template <class Place>
void expect_serial(Place& place, const hd::Schedule& schedule, int stages, int items, bool has_loss,
                   int replicas = 1, int first = 0) {
  const int layers = stages + stages / 2;  // some stages have two
  hd::Stages<MlpStage> model(
      layers, [=](int begin, int end) { return stage_of(begin, end, layers, has_loss); });
  hd::Runner run(model, schedule, place, {.slack = 3});
  for (int step = 0; step < 2; ++step) {
    const double loss = run.step(step, first, 1.0).loss;
    double expected = 0;
    for (int item = 0; has_loss && item < replicas * items; ++item)
      expected += serial(layers, true, step, 0, item)[0];
    bool equal = replicas == 1 ? loss == expected : std::abs(loss - expected) <= 1e-14 * expected;
    model.for_each([&](hd::Stage number, MlpStage&) {
      if (static_cast<int>(+number) + 1 != stages || has_loss) return;
      for (int item = 0; item < items; ++item)
        equal = equal && std::ranges::equal(model.output(number, hd::Item{item}),
                                            serial(layers, false, step, first, item));
    });
    if (!equal) throw hd::contract_error({schedule.name(), "differs from the serial model"});
  }
}

/// Every stage of a chain on rank s mod `ranks`: each microbatch goes around several times.
hd::Orders looped(int ranks, int stages, int items) {
  hd::Orders orders{"looped", {}, hd::StageGraph::chain(stages)};
  orders.ranks.resize(static_cast<std::size_t>(ranks));
  for (int s = 0; s < stages; ++s)
    for (int m = 0; m < items; ++m)
      orders.ranks[static_cast<std::size_t>(s % ranks)].push_back(
          {hd::Kind::forward, hd::Stage{s}, hd::Item{m}});
  return orders;
}

/// Calls `visit(schedule, stages, items)` for schedules over so many ranks.
template <class Visit>
void for_each_schedule(int ranks, Visit&& visit) {
  for (const int items : {1, 2, 7}) {
    for (const int depth : {0, 1, 3})
      visit(hd::systems::energon({.ranks = ranks, .requests = items, .depth = depth}), ranks,
            items);
    visit(hd::schedule::stream({.ranks = ranks, .microbatches = items}), ranks, items);
    visit(hd::weave(looped(ranks, 2 * ranks + 1, items)), 2 * ranks + 1, items);
  }
}

}  // namespace

TEST_CASE("forwards alone over MPI ranks make what the serial model makes, bit for bit") {
  hd::DeviceMesh mesh(MPI_COMM_WORLD, {{"pipe", world_size()}});
  for_each_schedule(world_size(), [&](const hd::Schedule& schedule, int stages, int items) {
    INFO(schedule.name());
    for (const bool has_loss : {false, true})
      CHECK_NOTHROW(expect_serial(mesh, schedule, stages, items, has_loss));
  });
}

TEST_CASE("forwards alone over threads make what the serial model makes, bit for bit") {
  if (world_size() > 1) return;
  for (const int ranks : {1, 2, 3, 4})
    for_each_schedule(ranks, [&](const hd::Schedule& schedule, int stages, int items) {
      INFO(schedule.name());
      CHECK_NOTHROW(hd::run_threads(ranks, [&](hd::ThreadTransport& transport) {
        expect_serial(transport, schedule, stages, items, false);
      }));
    });
}

TEST_CASE("replicas of a pipeline infer requests of their own") {
  if (world_size() % 2 != 0) return;
  hd::DeviceMesh mesh(MPI_COMM_WORLD, {{"pipe", world_size() / 2}, {"data", 2}});
  for_each_schedule(world_size() / 2, [&](const hd::Schedule& schedule, int stages, int items) {
    INFO(schedule.name());
    for (const bool has_loss : {false, true})
      CHECK_NOTHROW(expect_serial(mesh, schedule, stages, items, has_loss, 2,
                                  mesh.coordinate("data") * items));
  });
}

TEST_CASE("a Runner keeps EnergonAI's places for results as far as its slack goes") {
  const int ranks = world_size();
  hd::DeviceMesh mesh(MPI_COMM_WORLD, {{"pipe", ranks}});
  for (const int depth : {0, 1, 3}) {
    hd::Stages<MlpStage> model(
        ranks, [=](int first, int last) { return stage_of(first, last, ranks, false); });
    hd::Runner run(model, hd::systems::energon({.ranks = ranks, .requests = 6, .depth = depth}),
                   mesh, {.slack = static_cast<std::uint32_t>(std::max(depth, 1))});
    for (const hd::Buffer& buffer : run.schedule().buffers()) {
      const std::string& label = run.schedule()[buffer.label];
      if (label == hd::role::output) CHECK(buffer.parts == static_cast<unsigned>(depth) + 1);
      CHECK(label != hd::role::saved);
    }
  }
}

TEST_CASE("an output that is not kept is refused") {
  const int ranks = world_size();
  hd::DeviceMesh mesh(MPI_COMM_WORLD, {{"pipe", ranks}});
  hd::Stages<MlpStage> model(
      ranks, [=](int first, int last) { return stage_of(first, last, ranks, false); });
  hd::Runner run(model, hd::schedule::stream({.ranks = ranks, .microbatches = 2}), mesh);
  static_cast<void>(run.step(0, 0, 1.0));
  const auto refusal = [&](int stage, int item) {
    return hd::test::message_of<hd::contract_error>(
        [&] { static_cast<void>(model.output(hd::Stage{stage}, hd::Item{item})); });
  };
  CHECK_THAT(
      refusal(ranks, 0),
      ContainsSubstring("the output of this stage and microbatch was not kept on this rank") &&
          ContainsSubstring(hd::text("microbatch 0 of stage ", ranks)));
  const int rank = static_cast<int>(+mesh.rank());
  if (rank + 1 < ranks)
    CHECK_THAT(refusal(rank, 0),
               ContainsSubstring(hd::text("stage ", rank, ", of which the last step kept 0")));
  else
    CHECK_THAT(refusal(rank, 2),
               ContainsSubstring(hd::text("microbatch 2 of stage ", rank,
                                          ", of which the last step kept 2 microbatches")));
}

TEST_CASE("an output is had from the rank that made it, where two ranks hold the last stage") {
  const int ranks = world_size();
  const int items = 5;
  hd::Orders orders{"both ways", {}, hd::StageGraph::replicated_chain(ranks)};
  orders.ranks.resize(static_cast<std::size_t>(ranks));
  for (int m = 0; m < items; ++m)
    for (int r = 0; r < ranks; ++r)
      orders.ranks[static_cast<std::size_t>(r)].push_back(
          {hd::Kind::forward, hd::Stage{m % 2 == 0 ? r : ranks - 1 - r}, hd::Item{m}});
  hd::DeviceMesh mesh(MPI_COMM_WORLD, {{"pipe", ranks}});
  hd::Stages<MlpStage> model(
      ranks, [=](int first, int last) { return stage_of(first, last, ranks, false); });
  hd::Runner run(model, hd::weave(orders), mesh);
  const hd::Stage last{ranks - 1};
  const auto output = [&](int item) { return model.output(last, hd::Item{item}); };
  CHECK_THROWS_AS(output(0), hd::contract_error);  // no step yet
  static_cast<void>(run.step(0, 0, 1.0));
  const int rank = static_cast<int>(+mesh.rank());
  for (int item = 0; item < items; ++item)
    if (rank == (item % 2 == 0 ? ranks - 1 : 0))
      CHECK(std::ranges::equal(output(item), serial(ranks, false, 0, 0, item)));
    else
      CHECK_THAT(hd::test::message_of<hd::contract_error>([&] { (void)output(item); }),
                 ContainsSubstring(hd::text("microbatch ", item, " of stage ", last)) &&
                     ContainsSubstring("on the rank that ran it"));
}

TEST_CASE("a schedule that trains and keeps nothing for its backward calls is refused") {
  const int ranks = world_size();
  hd::DeviceMesh mesh(MPI_COMM_WORLD, {{"pipe", ranks}});
  const hd::Schedule whole = hd::schedule::one_f_one_b({.ranks = ranks, .microbatches = 2});
  hd::Builder builder = hd::Builder::like(whole, [](const hd::Buffer& buffer) { return buffer; });
  for (std::size_t i = 0; i < whole.size(); ++i) {
    const hd::Action& action = whole[hd::ActionId{i}];
    std::vector<hd::Use> uses;
    for (const hd::Use& use : whole.uses(hd::ActionId{i}))
      if (whole[whole[use.buffer].label] != hd::role::saved) uses.push_back(use);
    builder.add(
        {.kind = action.kind, .queue = action.queue, .stage = action.stage, .item = action.item},
        uses);
  }
  const hd::Schedule forgetful = std::move(builder).build();
  hd::Stages<MlpStage> model(
      ranks, [=](int first, int last) { return stage_of(first, last, ranks, true); });
  CHECK_THAT(
      hd::test::message_of<hd::contract_error>([&] { hd::Runner run(model, forgetful, mesh); }),
      ContainsSubstring("keeps nothing for a stage's backward call") && ContainsSubstring("0F0") &&
          ContainsSubstring("role 'saved'"));
}

TEST_CASE("a schedule in which an action does not use the weights of its stage is rejected") {
  const int ranks = world_size();
  hd::DeviceMesh mesh(MPI_COMM_WORLD, {{"pipe", ranks}});
  const hd::Schedule whole = hd::schedule::one_f_one_b({.ranks = ranks, .microbatches = 2});
  for (const hd::Kind kind : {hd::Kind::forward, hd::Kind::backward, hd::Kind::update}) {
    hd::Builder builder = hd::Builder::like(whole, [](const hd::Buffer& buffer) { return buffer; });
    for (std::size_t i = 0; i < whole.size(); ++i) {
      const hd::ActionId id{i};
      std::vector<hd::Use> uses;
      for (const hd::Use& use : whole.uses(id))
        if (whole[id].kind != kind || whole[whole[use.buffer].label] != hd::role::weights)
          uses.push_back(use);
      builder.add(whole, id, uses);
    }
    const hd::Schedule without = std::move(builder).build();
    hd::Stages<MlpStage> model(
        ranks, [=](int first, int last) { return stage_of(first, last, ranks, true); });
    CAPTURE(kind);
    CHECK_THAT(
        hd::test::message_of<hd::contract_error>([&] { hd::Runner run(model, without, mesh); }),
        ContainsSubstring("heddle::Stages: an action of a stage does not") &&
            ContainsSubstring("the label 'weights'"));
  }
}

TEST_CASE("Runners of several schedules take turns with one model, as each with its own") {
  const int ranks = world_size();
  const int layers = ranks + 1;
  hd::DeviceMesh mesh(MPI_COMM_WORLD, {{"pipe", ranks}});
  const auto make = [=] {
    return hd::Stages<MlpStage>(
        layers, [=](int first, int last) { return stage_of(first, last, layers, true); });
  };
  using Stages = hd::Stages<MlpStage>;
  using Runner = hd::Runner<Stages&, hd::DeviceMesh&>;
  const hd::Schedule training = hd::schedule::one_f_one_b({.ranks = ranks, .microbatches = 4});
  for (const int requests : {2, 7}) {
    const hd::Schedule inference = hd::schedule::stream({.ranks = ranks, .microbatches = requests});
    for (const bool trains_first : {false, true}) {
      Stages both = make(), trained = make(), inferred = make();
      std::optional<Runner> train, infer;
      if (trains_first) train.emplace(both, training, mesh);
      infer.emplace(both, inference, mesh);
      if (!trains_first) train.emplace(both, training, mesh);
      Runner train_alone(trained, training, mesh), infer_alone(inferred, inference, mesh);
      for (int step = 0; step < 4; ++step) {
        if (step == 2)  // asked while they run
          (void)hd::prepare_schedule(both, hd::schedule::zb_h1({.ranks = ranks, .microbatches = 3}),
                                     mesh);
        CHECK(train->step(step, 0, 1.0).loss == train_alone.step(step, 0, 1.0).loss);
        inferred.for_each([&](hd::Stage number, MlpStage& stage) {
          std::copy_n(trained.at(number).parameters(), stage.parameter_count(), stage.parameters());
        });
        CHECK(infer->step(step, 50, 1.0).loss == infer_alone.step(step, 50, 1.0).loss);
      }
      both.for_each([&](hd::Stage number, MlpStage& stage) {
        CHECK(std::equal(stage.parameters(), stage.parameters() + stage.parameter_count(),
                         trained.at(number).parameters()));
      });
    }
  }
}

TEST_CASE("two lengths of inference take turns, and keep their own outputs") {
  const int ranks = world_size();
  hd::DeviceMesh mesh(MPI_COMM_WORLD, {{"pipe", ranks}});
  hd::Stages<MlpStage> model(
      ranks, [=](int first, int last) { return stage_of(first, last, ranks, false); });
  hd::Runner many(model, hd::schedule::stream({.ranks = ranks, .microbatches = 5}), mesh);
  hd::Runner few(model, hd::systems::energon({.ranks = ranks, .requests = 2}), mesh);
  const hd::Stage last{ranks - 1};
  const bool has_it = +mesh.rank() == +last;
  for (int step = 0; step < 3; ++step) {
    for (const int items : {5, 2}) {
      static_cast<void>(items == 5 ? many.step(step, 0, 1.0) : few.step(step, 0, 1.0));
      for (int item = 0; has_it && item < 5; ++item)
        if (item < items)
          CHECK(std::ranges::equal(model.output(last, hd::Item{item}),
                                   serial(ranks, false, step, 0, item)));
        else
          CHECK_THROWS_AS(model.output(last, hd::Item{item}), hd::contract_error);
    }
  }
}

}  // namespace test_inference
