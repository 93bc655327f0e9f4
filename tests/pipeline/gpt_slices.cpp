// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors

// The GPT with its sequences cut into slices that pass through the pipeline one after another:
// losses and gradients are those of whole sequences on one rank, for lengths that the slices do not
// divide, and every rank keeps as many slices as the closed form says.

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <ostream>

#include <Kokkos_Core.hpp>
#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>
#include <mpi.h>

#include <heddle/heddle.hpp>
#include <heddle/schedule/generator/seq_1f1b.hpp>
#include <heddle/schedule/pass/link_slices.hpp>

#include "gpt_slices.hpp"
#include "gpt_training.hpp"
#include "support/complaint.hpp"
#include "support/world.hpp"

namespace test_gpt_slices {

namespace hd = heddle;
using namespace examples;
using Catch::Matchers::ContainsSubstring;
using hd::test::message_of;
using hd::test::world_rank;
using hd::test::world_size;

namespace {

const Text& words() {
  static const Text text = Text::load({}, 64);
  return text;
}

/// A division of the ranks, and how sequences are cut.
struct Cut {
  int slices = 1, microbatches = 1, context = 13, kv_heads = 4;
  int pipe = world_size(), data = 1, tensor = 1;
  bool tied = false;

  friend std::ostream& operator<<(std::ostream& out, const Cut& c) {
    return out << c.slices << " slices, " << c.microbatches << " microbatches, context "
               << c.context << ", " << c.kv_heads << " K,V heads, " << c.pipe << " x " << c.data
               << " x " << c.tensor << (c.tied ? ", tied" : "");
  }
};

GptTraining small(const Cut& cut) {
  GptTraining training;
  training.model = {.layers = 4,
                    .width = 16,
                    .heads = 4,
                    .context = cut.context,
                    .sequences = 2,
                    .vocabulary = 128,
                    .kv_heads = cut.kv_heads,
                    .tied = cut.tied};
  training.microbatches = cut.microbatches;
  training.replicas = cut.data;
  return training;
}

hd::Schedule sliced_schedule(const Cut& cut) {
  return hd::schedule::link_slices(
      hd::schedule::seq_1f1b(
          {.ranks = cut.pipe, .microbatches = cut.microbatches * cut.slices, .slices = cut.slices}),
      cut.slices);
}

/// Two steps, compared with those of one rank.
void train_as_one_rank(const Cut& cut) {
  INFO(cut);
  const GptTraining training = small(cut);
  hd::DeviceMesh mesh(MPI_COMM_WORLD,
                      {{"pipe", cut.pipe}, {"data", cut.data}, {"tensor", cut.tensor}});
  const GptStage<double>::Line line(mesh["tensor"]);
  const SlicedBatches<double> batches(training, cut.slices, line);
  Gpt<double> model = make_gpt<double>(training, {}, line, nullptr, {}, batches.shapes());
  hd::Runner run(model, sliced_schedule(cut), mesh);
  SerialGpt<double> serial(training);
  for (int step = 0; step < 2; ++step) {
    const double loss = run.step(batches.batch(words(), step, mesh.coordinate("data"))).loss;
    const double expected = serial.step(words(), step);
    CHECK(std::abs(loss - expected) <= 1e-12 * expected);
    const auto gradients =
        gather<double>(model, mesh, [](auto& stage) { return stage.gradients(); });
    const GradientDifference<double> difference(gradients, serial.gradients(),
                                                serial.stage().tensors());
    INFO(difference.where);
    CHECK(difference.worst <= 1e-12);
  }
  // Of this rank, the values that it keeps for backward passes at the same time.
  const auto pipe_rank = static_cast<std::size_t>(mesh.coordinate("pipe"));
  for (const hd::Buffer& buffer : run.schedule().buffers())
    if (+buffer.rank == static_cast<std::size_t>(world_rank()) &&
        run.schedule()[buffer.label] == hd::role::saved)
      CHECK(static_cast<int>(buffer.parts) ==
            std::min(cut.microbatches * cut.slices,
                     cut.pipe - 1 - static_cast<int>(pipe_rank) + cut.slices));
}

}  // namespace

TEST_CASE("slices of sequences through a pipeline: losses and gradients are those of one rank") {
  const int ranks = world_size();
  for (const int slices : {1, 2, 4, 13})
    train_as_one_rank({.slices = slices, .microbatches = slices == 4 ? ranks : 2});
  train_as_one_rank({.slices = 3, .microbatches = 3, .context = 7, .kv_heads = 2});
  train_as_one_rank({.slices = 5, .microbatches = 1, .kv_heads = 1, .tied = true});
}

TEST_CASE("slices beside replicas and divided layers") {
  if (world_size() % 2 != 0) return;
  const int half = world_size() / 2;
  train_as_one_rank({.slices = 3, .microbatches = 2, .pipe = half, .data = 2});
  train_as_one_rank({.slices = 3, .microbatches = 2, .kv_heads = 2, .pipe = half, .tensor = 2});
}

TEST_CASE("a stage rejects slices in another order") {
  const Cut cut{.slices = 2, .microbatches = 1};
  const GptTraining training = small(cut);
  const SlicedBatches<double> batches(training, cut.slices);
  GptStage<double> stage(training.model, 0, training.model.layers, 1, {}, {}, {}, nullptr, {},
                         batches.shapes());
  using Memory = Kokkos::View<double*, GptStage<double>::memory_space>;
  const Memory saved("saved", stage.saved_size()), delta("delta", stage.delta_size());
  stage.begin_step(batches.batch(words(), 0, 0));
  CHECK_THAT(message_of<hd::contract_error>(
                 [&] { stage.forward({.item = hd::Item{1}, .saved = saved.data()}); }),
             ContainsSubstring("microbatch 1 attends to microbatch 0") &&
                 ContainsSubstring("link_slices"));
  stage.forward({.item = hd::Item{0}, .saved = saved.data()});
  CHECK_THAT(
      message_of<hd::contract_error>([&] {
        stage.backward_input({.item = hd::Item{0}, .saved = saved.data(), .delta = delta.data()});
      }),
      ContainsSubstring("does not follow that of the next slice"));
  stage.fence();
}

}  // namespace test_gpt_slices
