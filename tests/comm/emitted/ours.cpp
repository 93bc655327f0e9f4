// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors

/// @file
/// The schedule of examples/consume_emitted, run by an Executor over MPI with stages that only
/// wait. Prints the seconds of a step, the least of several pairs of steps. waits.cpp is the same
/// in the emitted program.

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdio>
#include <thread>
#include <vector>

#include <mpi.h>

#include <heddle/comm/mpi_transport.hpp>
#include <heddle/execute.hpp>
#include <heddle/schedule.hpp>

namespace {

using namespace heddle;

void wait(const Task& task) {
  if (task.kind() == Kind::forward) std::this_thread::sleep_for(std::chrono::milliseconds(10));
  if (task.kind() == Kind::backward) std::this_thread::sleep_for(std::chrono::milliseconds(20));
}

void run() {
  const Schedule schedule = schedule::one_f_one_b(
      {.stages = 3,
       .microbatches = 4,
       .sizes = {.activation = 64, .saved = 64, .parameters = 64, .type = Scalar::f64}});
  MpiTransport transport(MPI_COMM_WORLD);
  std::vector<std::vector<std::byte>> memory;
  Executor<MpiTransport> executor(slice(schedule, transport.rank(),
                                        [&](BufferId, const Buffer& buffer) {
                                          return memory.emplace_back(buffer.bytes).data();
                                        }),
                                  transport);
  constexpr int steps = 2;  // which may overlap
  double least = 1e9;
  for (int run = 0; run < 4; ++run) {
    MPI_Barrier(MPI_COMM_WORLD);
    const double start = MPI_Wtime();
    for (int step = 0; step < steps; ++step) executor.step(wait);
    executor.drain();
    MPI_Barrier(MPI_COMM_WORLD);
    least = std::min(least, (MPI_Wtime() - start) / steps);
  }
  if (transport.rank() == Rank{0}) std::printf("%.6f\n", least);
}

}  // namespace

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  run();
  MPI_Finalize();
}
