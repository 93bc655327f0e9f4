// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
// ranks: 3
// alone: yes
// program: its own

// With stages that only wait, an emitted program takes as long as our Executor, within 3 %.

#include <array>
#include <chrono>
#include <cstddef>
#include <thread>
#include <vector>

#include <catch2/catch_test_macros.hpp>
#include <mpi.h>

#include <heddle/comm/mpi_transport.hpp>
#include <heddle/execute.hpp>
#include <heddle/schedule.hpp>

#include "../../examples/consume_emitted/pipeline.hpp"
#include "support/on_all_ranks.hpp"
#include "support/rounds.hpp"

// The waits of the emitted program nap, as those of our Executor do. Those of MPI spin, and then
// nothing tells the ranks from other programs on their cores.
extern "C" int MPI_Wait(MPI_Request* request, MPI_Status* status) {
  int done = 0;
  int result = PMPI_Test(request, &done, status);
  for (heddle::Waiting waiting(heddle::Idle::nap); result == MPI_SUCCESS && done == 0;
       result = PMPI_Test(request, &done, status))
    waiting();
  return result;
}

namespace test_emitted_waits {

using namespace heddle;

namespace {

constexpr std::chrono::milliseconds forward(10), backward(20);

/// The work of the emitted program.
class Waits : public pipeline::Work {
  void forward(const pipeline::Task&) override {
    std::this_thread::sleep_for(test_emitted_waits::forward);
  }
  void backward(const pipeline::Task&) override {
    std::this_thread::sleep_for(test_emitted_waits::backward);
  }
  void update(const pipeline::Task&) override {}
};

/// The work of our Executor.
void wait(const Task& task) {
  if (task.kind() == Kind::forward) std::this_thread::sleep_for(forward);
  if (task.kind() == Kind::backward) std::this_thread::sleep_for(backward);
}

/// Returns the seconds of a step of `run`, which runs as many as its argument says. Steps may
/// overlap, so several are measured.
double seconds_of_step(auto&& run) {
  constexpr int steps = 2;
  test::nap_until_all_arrive(MPI_COMM_WORLD);
  const Seconds start = steady_seconds();
  run(steps);
  test::nap_until_all_arrive(MPI_COMM_WORLD);
  double seconds = (steady_seconds() - start) / steps;
  MPI_Bcast(&seconds, 1, MPI_DOUBLE, 0, MPI_COMM_WORLD);
  return seconds;
}

}  // namespace

TEST_CASE("an emitted program of waits takes as long as our Executor, within 3 %") {
  // The schedule of examples/consume_emitted.
  const Schedule schedule = schedule::one_f_one_b(
      {.ranks = 3,
       .microbatches = 4,
       .sizes = {.activation = 64, .saved = 64, .parameters = 64, .type = Scalar::f64}});
  MpiTransport transport(MPI_COMM_WORLD);
  std::vector<std::vector<std::byte>> memory;
  Executor<MpiTransport> executor(slice(schedule, transport.rank(),
                                        [&](BufferId, const Buffer& buffer) {
                                          return memory.emplace_back(buffer.bytes).data();
                                        }),
                                  transport, {.idle = Idle::nap});
  test::Spread ours, theirs;
  bool enough = false;
  {
    pipeline::Program program(MPI_COMM_WORLD);  // ends the job if an exception passes it: no SKIP
    Waits work;
    std::array forms{test::Form{"our Executor, s a step",
                                [&] {
                                  return seconds_of_step([&](int steps) {
                                    for (int step = 0; step < steps; ++step) executor.step(wait);
                                    executor.drain();
                                  });
                                }},
                     test::Form{"the emitted program, s a step", [&] {
                                  return seconds_of_step([&](int steps) {
                                    for (int step = 0; step < steps; ++step) program.step(work);
                                    program.finish();
                                  });
                                }}};
    const auto holds = [&] {
      ours = forms[0].spread;
      theirs = forms[1].spread;
      return theirs.median() <= 1.03 * ours.median() && ours.median() <= 1.03 * theirs.median();
    };
    enough = test::measure_in_rounds(
        forms, holds, {.print = transport.rank() == Rank{0}, .all = test::on_all_ranks});
  }
  if (!enough) SKIP(test::no_result);
  INFO("ours " << ours << ", emitted " << theirs);
  CHECK(theirs.median() <= 1.03 * ours.median());
  CHECK(ours.median() <= 1.03 * theirs.median());
}

}  // namespace test_emitted_waits
