// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
// ranks: 1 2 3 4 5 6 7 8
// timeout: 600
// program: its own

// The GPT with every stage divided along an axis of the mesh, against the same training on one
// rank: every P x D x T, with a vocabulary and rows that do not divide.

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>
#include <mpi.h>

#include <heddle/heddle.hpp>
#include <heddle/schedule/pass/recompute.hpp>

#include "gpt_training.hpp"
#include "support/complaint.hpp"
#include "support/sent_bytes.hpp"
#include "support/world.hpp"

namespace test_tensor_parallel {

namespace hd = heddle;
using namespace examples;
using Catch::Matchers::ContainsSubstring;
using hd::test::sent_bytes;
using hd::test::world_size;

namespace {

const Text& words() {
  static const Text text = Text::load({}, 64);
  return text;
}

GptTraining small(int layers, int microbatches, int replicas, int heads) {
  GptTraining training;
  training.model = {
      .layers = layers, .width = 4 * heads, .heads = heads, .context = 5, .sequences = 3};
  training.microbatches = microbatches;
  training.replicas = replicas;
  training.optimizer.learning_rate = 1e-2;
  return training;
}

/// Five steps of a P x D x T mesh.
void expect_serial(const hd::Schedule& schedule, const GptTraining& training, int tensor,
                   hd::RowForm form = hd::RowForm::sharded, hd::StagesOptions options = {}) {
  INFO(schedule.name() << " x " << training.replicas << " x " << tensor);
  hd::DeviceMesh mesh(
      MPI_COMM_WORLD,
      {{"pipe", schedule.ranks()}, {"data", training.replicas}, {"tensor", tensor}});
  const GptStage<double>::Line line(mesh["tensor"], form);
  auto model = make_gpt<double>(training, options, line);
  hd::Runner run(model, schedule, mesh);
  SerialGpt<double> serial(training);
  for (int step = 0; step < 5; ++step) {
    const auto tokens = batch(training, words(), step, mesh.coordinate("data"));
    const double loss = run.step(tokens, weight(training)).loss;
    const double reference = serial.step(words(), step);
    INFO("step " << step);
    REQUIRE(std::abs(loss - reference) <= 1e-10 * reference);
    if (step > 0) continue;
    const auto gradients =
        gather<double>(model, mesh, [](auto& stage) { return stage.gradients(); });
    const GradientDifference<double> difference(gradients, serial.gradients(),
                                                serial.stage().tensors());
    INFO("tensor " << difference.where);
    REQUIRE(gradients.size() == serial.stage().parameter_count());
    REQUIRE(difference.worst <= 1e-11);
  }
  CHECK(serial.step(words(), 5) < 0.99 * std::log(256));  // it has learned something
}

/// Calls `visit(pipe, data, tensor)` for every division of the ranks.
template <class Visit>
void for_each_division(Visit&& visit) {
  const int ranks = world_size();
  for (int pipe = 1; pipe <= ranks; ++pipe)
    for (int data = 1; pipe * data <= ranks; ++data)
      if (ranks % (pipe * data) == 0) visit(pipe, data, ranks / pipe / data);
}

}  // namespace

TEST_CASE("every P x D x T trains as one rank does") {
  for_each_division([](int pipe, int data, int tensor) {
    expect_serial(hd::schedule::one_f_one_b({.ranks = pipe, .microbatches = 3}),
                  small(pipe + 1, 3, data, tensor), tensor);
  });
}

TEST_CASE("divided stages under other schedules, sums and forms train as one rank does") {
  if (world_size() > 4) return;
  for_each_division([](int pipe, int data, int tensor) {
    if (tensor == 1) return;
    const auto training = small(2 * pipe + 1, 2 * pipe, data, 2 * tensor);
    const hd::Schedule schedule =
        hd::schedule::interleaved({.ranks = pipe, .stages_per_rank = 2, .microbatches = 2 * pipe});
    expect_serial(schedule, training, tensor, hd::RowForm::whole);
    expect_serial(schedule, training, tensor, hd::RowForm::sharded,
                  {.gradient_sum = hd::GradientSum::library});
    expect_serial(hd::schedule::recompute(hd::schedule::gpipe({.ranks = pipe, .microbatches = 3})),
                  small(pipe, 3, data, tensor), tensor);
    expect_serial(hd::schedule::zb_h1({.ranks = pipe, .microbatches = 2 * pipe}), training, tensor);
  });
}

TEST_CASE("a divided stage sends the bytes of its closed form") {
  const hd::Communicator world(MPI_COMM_WORLD);
  const GptStage<double>::Line line(world);
  const std::size_t ranks = line.size();
  const auto training = small(3, 1, 1, static_cast<int>(ranks));
  const auto layers = static_cast<std::uint64_t>(training.model.layers);
  const auto width = static_cast<std::uint64_t>(training.model.width);
  const std::uint64_t rows = 15;
  GptStage<double> stage(training.model, 0, training.model.layers, 1, {}, {}, line);
  const std::vector<std::uint8_t> tokens = batch(training, words(), 0, 0);
  stage.begin_step(tokens, 1);
  stage.zero_gradients();
  const auto memory = [](std::size_t count) {
    return Kokkos::View<double*, Space::memory_space>("memory", count);
  };
  const auto saved = memory(stage.saved_size()), delta = memory(stage.delta_size());

  // What a rank does not send of so many things: its own share, or that of the next rank.
  const auto without = [&](std::uint64_t things, std::size_t rank) {
    return ranks == 1 ? 0 : things - hd::even_share(things, ranks, rank % ranks).count;
  };
  const std::uint64_t sum = without(rows, line.rank()) * width * 8;
  const std::uint64_t gather = without(rows, line.rank() + 1) * width * 8;
  const auto all_reduce = [&](std::uint64_t things, std::uint64_t bytes) {
    return (without(things, line.rank()) + without(things, line.rank() + 1)) * bytes;
  };
  sent_bytes = 0;
  stage.forward({.item = hd::Item{0}, .saved = saved.data()});
  CHECK(sent_bytes == layers * (2 * gather + 2 * sum) + sum + gather + all_reduce(rows, 24));
  sent_bytes = 0;
  stage.backward_input({.item = hd::Item{0}, .saved = saved.data(), .delta = delta.data()});
  CHECK(sent_bytes == layers * (2 * gather + 2 * sum) + sum);
  sent_bytes = 0;
  stage.backward_weight({.item = hd::Item{0}, .saved = saved.data(), .delta = delta.data()});
  CHECK(sent_bytes ==
        layers * 2 * gather + 2 * gather + all_reduce((2 * layers + 1) * 2 * width, 8));
  sent_bytes = 0;
  stage.update();
  CHECK(sent_bytes == 0);
}

TEST_CASE("heads that do not divide are refused with the remedy, on every rank alike") {
  const int ranks = world_size();
  if (ranks == 1) return;
  hd::DeviceMesh mesh(MPI_COMM_WORLD, {{"tensor", ranks}});
  const auto training = small(2, 1, 1, ranks + 1);
  const GptStage<double>::Line line(mesh["tensor"]);
  auto model = make_gpt<double>(training, {}, line);
  const auto schedule = hd::schedule::one_f_one_b({.ranks = 1, .microbatches = 1});
  CHECK_THAT(hd::test::message_of<hd::contract_error>([&] { hd::Runner(model, schedule, mesh); }),
             ContainsSubstring("the number of heads must be a multiple of the ranks of the line") &&
                 ContainsSubstring("use a number of ranks that divides the heads"));
}

}  // namespace test_tensor_parallel
