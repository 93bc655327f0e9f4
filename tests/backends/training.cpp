// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors

/// @file
/// The example's GPT trained on one rank in examples::Space. Losses and gradients are written down
/// where HEDDLE_RESULTS says: scripts/backends compares the files of all back ends.

#include <string>
#include <vector>

#include <Kokkos_Core.hpp>

#include "gpt_training.hpp"
#include "results.hpp"
#include "text.hpp"

namespace {

/// Losses of ten steps and the gradients of the first. The bounds are those by which example 10
/// judges ranks against one rank, for the same reason: sums in another order.
template <class Real>
void training(const std::string& name, double losses_apart, double gradients_apart) {
  examples::GptTraining training;
  training.model = {.layers = 2, .width = 16, .heads = 2, .context = 8, .sequences = 2};
  training.microbatches = 3;
  training.optimizer.learning_rate = 1e-2;
  const auto text = examples::Text::load({}, 8);
  examples::SerialGpt<Real> gpt(training);
  std::vector<double> losses;
  std::vector<Real> first;
  for (int step = 0; step < 10; ++step) {
    losses.push_back(gpt.step(text, step));
    if (step == 0) first = gpt.gradients();
  }
  examples::write_results(name + "_losses", losses, losses_apart);
  examples::write_results(name + "_gradients", first, gradients_apart);
}

}  // namespace

int main(int argc, char** argv) {
  const Kokkos::ScopeGuard kokkos(argc, argv);
  training<float>("gpt_float", 1e-4, 1e-4);
  training<double>("gpt_double", 1e-10, 1e-11);
}
