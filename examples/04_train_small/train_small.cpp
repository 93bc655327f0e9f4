// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors

// Example 10 in a page: trains a small byte-level GPT on 4 ranks and leaves the predicted and the
// measured timeline in train.json.
//
//   mpiexec -n 4 example_04_train_small

#include <iostream>

#include <heddle/heddle.hpp>
#include <heddle/trace.hpp>

#include "gpt_training.hpp"

namespace hd = heddle;

int main(int argc, char** argv) {
  hd::Environment env(argc, argv);  // MPI and Kokkos
  hd::DeviceMesh mesh(MPI_COMM_WORLD, {{"pipe", 2}, {"data", 2}});
  const bool speaks = mesh.rank() == 0;

  const auto schedule = hd::schedule::one_f_one_b({.ranks = 2, .microbatches = 4});
  if (speaks) std::cout << hd::to_grid(schedule);  // look before you run

  const examples::GptTraining training{
      .model = {.layers = 2, .width = 32}, .microbatches = 4, .replicas = 2};
  const auto text = examples::Text::load("", 64);  // C++ headers: text that every machine has
  auto model = examples::make_gpt<float>(training);
  hd::Runner run(model, schedule, mesh, {.execute = {.record = true}});
  for (int step = 0; step < 20; ++step) {
    const auto batch = examples::batch(training, text, step, mesh.coordinate("data"));
    const double loss = run.step(batch, examples::weight(training)).loss;
    if (speaks) std::cout << "step " << step << ": loss " << loss << '\n';
  }

  const auto predicted = hd::simulate(run.schedule(), run.costs(), hd::measure_machine(mesh));
  const auto measured = run.timeline();
  if (speaks) hd::trace::write("train.json", predicted, measured);  // open in ui.perfetto.dev
}
