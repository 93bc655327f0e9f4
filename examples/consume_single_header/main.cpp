// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors

/// @file
/// A program of one file and one header, which `scripts/single-header > heddle-single.hpp` writes.
/// It simulates a training pipeline, and runs a pipeline of two threads.

#include <iostream>

#include "heddle-single.hpp"

namespace {

/// Stage 0 squares the numbers 0, 1, ..., and stage 1 adds them up.
struct Squares {
  long sum = 0;

  void operator()(const heddle::Task& task) {
    if (task.stage() == 0) {
      const long number = static_cast<long>(+task.item());
      task.get<long>(heddle::role::output)[0] = number * number;
    } else {
      sum += task.get<const long>(heddle::role::input)[0];
    }
  }
};

}  // namespace

int main() {
  const auto training = heddle::schedule::one_f_one_b({.ranks = 4, .microbatches = 8});
  std::cout << "Heddle " << HEDDLE_VERSION_MAJOR << '.' << HEDDLE_VERSION_MINOR << '.'
            << HEDDLE_VERSION_PATCH << ": 1F1B on 4 stages with 8 microbatches, bubble ratio "
            << heddle::simulate(training, {.forward = 1, .backward = 2}).bubble_ratio() << '\n';

  const auto stream = heddle::schedule::stream(
      {.ranks = 2, .microbatches = 100, .sizes = {.activation = sizeof(long)}});
  heddle::run_threads(2, [&](heddle::ThreadTransport& transport) {
    Squares model;
    heddle::Runner run(model, stream, transport);
    run.step();
    if (transport.rank() == 1) std::cout << "sum of the first 100 squares: " << model.sum << '\n';
  });
}
