// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors

// space: its own

// A model that exists: a GPT in plain functions over flat arrays (gpt.cpp), with an embedding that
// is also the matrix of its head. adaptor.cpp makes a chain of it; this program trains it by six
// schedules and compares every loss, gradient and weight with the loop of gpt.cpp, bit by bit.
//
//   mpiexec -n 4 example_19_c_model

#include <algorithm>
#include <cstddef>
#include <filesystem>
#include <iostream>
#include <string>
#include <string_view>
#include <vector>

#include <mpi.h>

#include <heddle/comm/device_mesh.hpp>
#include <heddle/comm/environment.hpp>
#include <heddle/core/random.hpp>
#include <heddle/core/text.hpp>
#include <heddle/execute/runner.hpp>
#include <heddle/pipeline/chain.hpp>
#include <heddle/pipeline/checkpoint.hpp>
#include <heddle/pipeline/partition.hpp>
#include <heddle/pipeline/stages.hpp>
#include <heddle/schedule/generator/catalogue.hpp>
#include <heddle/schedule/order/weave.hpp>

#include "adaptor.hpp"

using Stage = hd::ChainStage<float>;
constexpr int microbatches = 8, sequences = 2, steps = 3;

Batch make_batch() {
  Batch batch{{.tokens = 5, .width = 8, .heads = 2, .vocabulary = 11, .layers = 4},
              sequences,
              microbatches,
              0,
              {},
              {},
              {}};
  const hd::Random random(1, "tokens");
  for (int i = 0; i < microbatches * sequences * batch.shape.tokens; ++i) {
    const double value = 11 * random.uniform(static_cast<std::size_t>(i));
    batch.ids.push_back(static_cast<int>(value));
    batch.next.push_back(static_cast<int>(value * value) % 11);
  }
  batch.weights.resize(gpt_weights(&batch.shape));
  gpt_initialize(&batch.shape, batch.weights.data());
  return batch;
}

/// A step of the loop of gpt.cpp.
struct PlainStep {
  double loss;
  std::vector<float> weights, gradients;
};

std::vector<PlainStep> train_plain(const Batch& batch, int replicas, int count) {
  std::vector<PlainStep> result;
  std::vector<float> weights = batch.weights, gradients(weights.size()), velocity(weights.size());
  for (int step = 0; step < count; ++step) {
    const double loss =
        gpt_gradients(&batch.shape, gradients.data(), weights.data(), batch.ids.data(),
                      batch.next.data(), microbatches, replicas, sequences);
    momentum_step(weights.data(), gradients.data(), velocity.data(), weights.size(), 0.1f);
    result.push_back({loss, weights, gradients});
  }
  return result;
}

/// The arrays of layers [first, last) among those of the whole model, as a stage has them.
std::vector<float> in_stage(const Batch& batch, const std::vector<float>& whole,
                            hd::LayerRange layers) {
  Batch with = batch;
  with.weights = whole;
  Stage stage = chain_of(with)({.layers = layers});
  return {stage.parameters(), stage.parameters() + stage.parameter_count()};
}

/// The values that were compared with those of the loop, and how many of them differ.
struct Comparison {
  long compared = 0, differ = 0;
  void add(double ours, double theirs) {
    ++compared;
    differ += ours != theirs;
  }
};

/// Compares what this rank has after a step.
void compare(const Batch& batch, hd::Stages<Stage>& model, int stages, const PlainStep& plain,
             Comparison& with) {
  const auto ranges = hd::partition_layers(model.layers(), stages);
  model.for_each([&](hd::Stage number, Stage& stage) {
    const auto weights = in_stage(batch, plain.weights, ranges[+number]);
    const auto gradients = in_stage(batch, plain.gradients, ranges[+number]);
    for (std::size_t i = 0; i < stage.parameter_count(); ++i) {
      with.add(stage.parameters()[i], weights[i]);
      with.add(stage.gradients()[i], gradients[i]);
    }
  });
}

/// Trains on `mesh` and says whether all ranks have the bits of the loop. The first steps may come
/// from a checkpoint.
void train(Batch batch, hd::DeviceMesh& mesh, std::string_view name, const std::string& load = {},
           const std::string& store = {}) {
  const hd::MeshShape& shape = mesh.shape();
  const int pipe = shape.size("pipe"), replicas = shape.size("data");
  batch.first = mesh.coordinate("data") * microbatches / replicas;
  const hd::Schedule schedule = hd::weave(hd::schedule::find_schedule(name).orders(
      {.ranks = pipe, .microbatches = microbatches / replicas, .stages_per_rank = 2}));
  int stages = 0;
  for (const hd::Buffer& buffer : schedule.buffers())
    stages = std::max(stages, static_cast<int>(+buffer.stage) + 1);
  const hd::Chain<float> chain = chain_of(batch);
  hd::Stages<Stage> model(chain.size(), chain);
  hd::Runner run(model, schedule, mesh);
  const auto plain = train_plain(batch, replicas, steps + 2);
  if (!load.empty()) hd::restore(load, model, mesh);
  std::size_t step = load.empty() ? 0 : steps;
  Comparison with;
  for (const std::size_t end = step + (load.empty() ? steps : 2); step < end; ++step) {
    with.add(run.step().loss, plain[step].loss);
    compare(batch, model, stages, plain[step], with);
  }
  if (!store.empty()) hd::save(store, model, mesh);
  MPI_Allreduce(MPI_IN_PLACE, &with, 2, MPI_LONG, MPI_SUM, mesh.all().get());
  if (mesh.rank() == hd::Rank{0})
    std::cout << name << (replicas > 1 ? ", two replicas" : "") << (load.empty() ? "" : ", resumed")
              << ": " << with.differ << " of " << with.compared
              << " values differ from the plain loop" << std::endl;
}

int main(int argc, char** argv) {
  hd::Environment env(argc, argv);
  const Batch batch = make_batch();
  int ranks = 1;
  MPI_Comm_size(MPI_COMM_WORLD, &ranks);
  const std::string file = "c_model.ckpt";
  hd::DeviceMesh mesh(MPI_COMM_WORLD, {{"data", 1}, {"pipe", ranks}});
  for (const char* name : {"gpipe", "1f1b", "interleaved", "zb-h1", "zb-v", "dualpipe-v"})
    train(batch, mesh, name, {}, ranks == 4 && std::string_view(name) == "zb-v" ? file : "");
  if (ranks == 4) {
    hd::DeviceMesh replicas(MPI_COMM_WORLD, {{"data", 2}, {"pipe", 2}});
    for (const char* name : {"gpipe", "1f1b", "interleaved", "zb-h1", "zb-v", "dualpipe-v"})
      train(batch, replicas, name);
    // Saved by four ranks, resumed by two of them.
    MPI_Comm two = MPI_COMM_NULL;
    MPI_Comm_split(MPI_COMM_WORLD, mesh.rank() < hd::Rank{2} ? 0 : 1, 0, &two);
    {
      hd::DeviceMesh half(two, {{"data", 1}, {"pipe", 2}});
      if (mesh.rank() < hd::Rank{2}) train(batch, half, "1f1b", file);
    }
    MPI_Comm_free(&two);
    if (mesh.rank() == hd::Rank{0}) std::filesystem::remove(file);
  }
}
