// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
// ranks: 2

/// @file
/// DistriFusion's pattern: 50 steps on patches, whose neighbours' activations are one step old
/// after 4 steps of warm-up, against the same steps that wait for fresh ones. Messages take as long
/// as steps do: simulated on 8 ranks, and on 2 ranks over shaped links with steps that only wait,
/// so that busy cores are no hindrance. The bound of both is (50 + 49) / (50 + 4) = 1.83.
///
/// There is nothing to iterate over that Google Benchmark could time: steps belong to all ranks.

#include <chrono>
#include <cstdint>
#include <exception>
#include <iostream>
#include <thread>
#include <vector>

#include <mpi.h>

#include <heddle/execute/shaped_transport.hpp>
#include <heddle/heddle.hpp>
#include <heddle/schedule/redistribution.hpp>

#include "../ranks.hpp"
#include "../support.hpp"

namespace hd = heddle;
namespace hs = hd::schedule;

namespace {

constexpr const char* name = "tensor/stale";
constexpr int steps = 50, pairs = 31;
constexpr std::int64_t rows = 64;
constexpr hd::Bytes row = 4096;
constexpr hs::Staleness fresh{}, stale{.age = 1, .warmup = 4};

/// Patches of all ranks, each of which needs those of all others.
hs::BlockExchange patches(int ranks) {
  const hd::Layout layout(hd::MeshShape{{"patches", ranks}}, {ranks * rows},
                          {hd::Shard{0, {}, (ranks - 1) * rows}});
  return hs::halo_exchange(layout, ranks, row);
}

/// A step that sleeps, and casts that copy nothing: what is sent is of no interest here.
struct WaitingStep {
  static constexpr std::chrono::microseconds time{2'000};
  int made = 0, packed = 0;

  void operator()(const hd::Task& task) {
    if (task.kind() == hd::Kind::cast) {
      ++packed;
      return;
    }
    ++made;
    std::this_thread::sleep_for(time);
  }
};

void simulated() {
  constexpr int ranks = 8;
  const hs::BlockExchange exchange = patches(ranks);
  const hd::StageCosts costs{.forward = 1, .per_byte = 1.0 / (rows * row)};
  const auto makespan = [&](const hs::Staleness& staleness) {
    return hd::simulate(hs::exchanged_steps(exchange, steps, staleness), costs).makespan();
  };
  bench::print_ratio(name, "fresh_simulated",
                     bench::summarise({makespan(fresh) / makespan(stale)}));
}

void executed() {
  hd::DeviceMesh their_mesh(MPI_COMM_WORLD, {{"patches", 2}});
  hd::DeviceMesh our_mesh(MPI_COMM_WORLD, {{"patches", 2}});
  const double seconds = std::chrono::duration<double>(WaitingStep::time).count();
  const hd::Shape shape{.link = [&](hd::Rank, hd::Rank, hd::Seconds) {
    return hd::Link{.bandwidth = rows * row / seconds};
  }};
  hd::ShapedTransport their_links(their_mesh.transport(), shape);
  hd::ShapedTransport our_links(our_mesh.transport(), shape);
  const hs::BlockExchange exchange = patches(2);
  WaitingStep theirs, ours;
  const hd::RunOptions options{.execute = {.idle = hd::Idle::nap}};
  hd::Runner their_run(theirs, hs::exchanged_steps(exchange, steps, fresh), their_links, options);
  hd::Runner our_run(ours, hs::exchanged_steps(exchange, steps, stale), our_links, options);

  std::vector<double> their_seconds, our_seconds;
  for (int i = 0; i <= pairs; ++i) {
    double taken[2];
    for (const bool mine : {i % 2 == 0, i % 2 != 0})
      taken[mine] = bench::seconds_of_all(our_mesh.all().get(), [&] {
        decltype(our_run)& run = mine ? our_run : their_run;
        run.step();
        run.drain();
      });
    if (i == 0) continue;  // warms up connections
    their_seconds.push_back(taken[0]);
    our_seconds.push_back(taken[1]);
  }
  bench::require_equal("steps of a rank", ours.made, theirs.made);
  bench::require_equal("messages of a rank", ours.packed, theirs.packed);
  if (our_mesh.rank() != hd::Rank{0}) return;
  std::cout << name << ": fresh " << bench::summarise(their_seconds).median * 1e3 << " ms, stale "
            << bench::summarise(our_seconds).median * 1e3 << " ms, medians of " << pairs
            << " pairs\n";
  bench::print_ratio(name, "fresh_shaped", bench::ratios(their_seconds, our_seconds));
}

}  // namespace

int main(int argc, char** argv) {
  hd::Environment env(argc, argv);
  try {
    int ranks = 0, rank = 0;
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    hd::expects(ranks == 2, [&] {
      return hd::ErrorInfo{name, "it runs on 2 ranks", hd::text(ranks, " ranks")};
    });
    if (rank == 0) simulated();
    executed();
  } catch (const std::exception& error) {
    std::cerr << name << ": " << error.what() << '\n';
    MPI_Abort(MPI_COMM_WORLD, 1);
  }
}
