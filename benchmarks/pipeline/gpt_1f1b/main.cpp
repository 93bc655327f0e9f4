// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
// ranks: 2

/// @file
/// Training steps of the example's GPT over ranks: a Runner against a loop written by hand.
///
/// The two alternate step by step on the same batches, and who is first alternates too, so that
/// both see the same machine; Google Benchmark runs one after the other and would compare two
/// moments.

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <iostream>
#include <type_traits>
#include <vector>

#include <mpi.h>

#include <heddle/heddle.hpp>

#include "../../support.hpp"
#include "competitor.hpp"
#include "gpt_training.hpp"
#include "text.hpp"

namespace hd = heddle;

namespace {

constexpr const char* name = "pipeline/gpt_1f1b";
constexpr int warm_up = 4;
constexpr int pairs = 60;

/// Seconds of one step between barriers, the slowest rank's, on every rank.
double time_step(bench::Competitor& competitor, const std::vector<std::uint8_t>& tokens,
                 double weight, MPI_Comm comm, double& loss) {
  MPI_Barrier(comm);
  double seconds = bench::seconds_of([&] { loss = competitor.step(tokens, weight); });
  MPI_Allreduce(MPI_IN_PLACE, &seconds, 1, MPI_DOUBLE, MPI_MAX, comm);
  return seconds;
}

void run(MPI_Comm comm) {
  // A device computes with as many threads as it has.
  constexpr bool on_host =
      std::is_same_v<Kokkos::DefaultExecutionSpace::memory_space, Kokkos::HostSpace>;
  hd::expects(!on_host || Kokkos::DefaultExecutionSpace().concurrency() == 1, [] {
    return hd::ErrorInfo{name, "one thread a rank is compared",
                         hd::text(Kokkos::DefaultExecutionSpace().concurrency(), " threads"),
                         "set OMP_NUM_THREADS=1"};
  });
  int rank = 0;
  MPI_Comm_rank(comm, &rank);
  examples::GptTraining training;
  training.model = {.layers = 4, .width = 128, .heads = 4, .context = 64, .sequences = 4};
  training.microbatches = 8;
  training.optimizer.learning_rate = 3e-3;
  const auto text = examples::Text::load({}, static_cast<std::size_t>(training.model.context));
  const auto ours = bench::make_ours(training, comm);
  const auto hand = bench::make_hand_written(training, comm);

  std::vector<double> our_times, hand_times;
  double first_loss = 0;
  double last_loss = 0;
  for (int step = 0; step < warm_up + pairs; ++step) {
    const auto tokens = examples::batch(training, text, step, 0);
    const double weight = examples::weight(training);
    double our_loss = 0, our_time = 0, hand_loss = 0, hand_time = 0;
    if (step % 2 == 0) our_time = time_step(*ours, tokens, weight, comm, our_loss);
    hand_time = time_step(*hand, tokens, weight, comm, hand_loss);
    if (step % 2 != 0) our_time = time_step(*ours, tokens, weight, comm, our_loss);
    if (!(std::abs(our_loss - hand_loss) <= 1e-12 * std::abs(hand_loss)))
      throw hd::contract_error({name, hd::text("the losses of step ", step, " differ"),
                                hd::text("ours ", our_loss, ", by hand ", hand_loss)});
    if (step == 0) first_loss = our_loss;
    last_loss = our_loss;
    if (step < warm_up) continue;
    our_times.push_back(our_time * 1e3);
    hand_times.push_back(hand_time * 1e3);
  }

  hd::Bytes bytes[2] = {ours->buffers(), hand->buffers()};
  MPI_Allreduce(MPI_IN_PLACE, bytes, 2, MPI_UINT64_T, MPI_SUM, comm);
  hd::expects(bytes[0] == bytes[1], [&] {
    return hd::ErrorInfo{name, "the two have not equal memory for buffers",
                         hd::text("ours ", bytes[0], " bytes on all ranks, by hand ", bytes[1])};
  });
  if (rank != 0) return;
  std::cout << "losses equal in all " << warm_up + pairs << " steps, " << first_loss << " to "
            << last_loss << "; buffers of all ranks " << static_cast<double>(bytes[0]) / 1e6
            << " MB on both sides; " << pairs << " pairs\n";
  bench::print_value(name, "step_ours", bench::summarise(our_times), "ms");
  bench::print_value(name, "step_by_hand", bench::summarise(hand_times), "ms");
  bench::print_ratio(name, "hand_written_mpi", bench::ratios(hand_times, our_times));
}

}  // namespace

int main(int argc, char** argv) {
  hd::Environment env(argc, argv);
  const int status = bench::status_of(name, [] { run(MPI_COMM_WORLD); });
  if (status != 0) MPI_Abort(MPI_COMM_WORLD, status);
}
