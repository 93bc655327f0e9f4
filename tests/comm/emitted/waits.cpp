// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors

/// @file
/// The emitted program of examples/consume_emitted with stages that only wait; knows nothing of
/// Heddle. Prints the seconds of a step, the least of several pairs of steps. ours.cpp is the same
/// with an Executor.

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <thread>

#include "pipeline.hpp"

namespace {

class Waits : public pipeline::Work {
  void forward(const pipeline::Task&) override {
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  }
  void backward(const pipeline::Task&) override {
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
  }
  void update(const pipeline::Task&) override {}
};

void run() {
  pipeline::Program program(MPI_COMM_WORLD);
  Waits work;
  constexpr int steps = 2;  // which may overlap
  double least = 1e9;
  for (int run = 0; run < 4; ++run) {
    MPI_Barrier(MPI_COMM_WORLD);
    const double start = MPI_Wtime();
    for (int step = 0; step < steps; ++step) program.step(work);
    program.finish();
    MPI_Barrier(MPI_COMM_WORLD);
    least = std::min(least, (MPI_Wtime() - start) / steps);
  }
  int rank = 0;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  if (rank == 0) std::printf("%.6f\n", least);
}

}  // namespace

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  run();
  MPI_Finalize();
}
