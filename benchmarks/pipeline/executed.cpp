// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
// ranks: 2 4

/// @file
/// Published gains of schedules, executed with stages that only wait, so that more ranks than cores
/// are no hindrance. On 2 ranks DAPPLE against GPipe with the same memory; on 4 ranks 2BP against
/// fused backward passes, and EnergonAI's non-blocking sends against blocking ones.
///
/// There is nothing to iterate over that Google Benchmark could time: steps belong to all ranks.

#include <chrono>
#include <exception>
#include <iostream>
#include <string>
#include <thread>
#include <vector>

#include <mpi.h>

#include <heddle/execute/shaped_transport.hpp>
#include <heddle/heddle.hpp>
#include <heddle/schedule/pass/two_bp.hpp>
#include <heddle/systems/energonai/energon.hpp>

#include "../ranks.hpp"
#include "../support.hpp"

namespace hd = heddle;

namespace {

using std::chrono::milliseconds;

/// Of each case; a pair takes a second or less.
constexpr int pairs = 31;

/// A forward, and each half of a backward.
constexpr milliseconds part{8};
/// A transfer of EnergonAI's case.
constexpr hd::Seconds transfer = 2e-3;

/// Stages that wait, for a time and not until one: what comes on top of it is not hidden.
struct WaitingModel {
  milliseconds worked{0};  ///< by this rank

  void operator()(const hd::Task& task) {
    if (task.kind() > hd::Kind::backward) return;
    const milliseconds work = task.kind() == hd::Kind::backward ? 2 * part : part;
    worked += work;
    std::this_thread::sleep_for(work);
  }
};

/// Runs the two in turn, `theirs(model)` and `ours(model)`, and prints how much longer theirs
/// takes.
template <class Theirs, class Ours>
void compare(const char* name, const char* peer, const hd::DeviceMesh& mesh,
             WaitingModel& their_model, WaitingModel& our_model, Theirs&& theirs, Ours&& ours) {
  std::vector<double> their_seconds, our_seconds;
  for (int pair = 0; pair <= pairs; ++pair) {
    const double a = bench::seconds_of_all(mesh.all().get(), theirs);
    const double b = bench::seconds_of_all(mesh.all().get(), ours);
    if (pair == 0) continue;  // warms up connections
    their_seconds.push_back(a);
    our_seconds.push_back(b);
  }
  bench::require_equal("time worked by a rank", our_model.worked.count(),
                       their_model.worked.count());
  if (mesh.rank() != hd::Rank{0}) return;
  std::cout << name << ": " << peer << ' ' << bench::summarise(their_seconds).median * 1e3
            << " ms, ours " << bench::summarise(our_seconds).median * 1e3 << " ms, medians of "
            << pairs << " pairs\n";
  bench::print_ratio(name, peer, bench::ratios(their_seconds, our_seconds));
}

const hd::RunOptions options{.execute = {.idle = hd::Idle::nap}};
const hd::StageSizes sizes{.activation = 1 << 16};

/// Two stages with memory for two microbatches: GPipe must empty the pipe after two, DAPPLE takes
/// 16 in a step.
void dapple() {
  hd::DeviceMesh mesh(MPI_COMM_WORLD, {{"pipe", 2}});
  constexpr int live = 2, microbatches = 16;
  WaitingModel their_model, our_model;
  hd::Runner gpipe(their_model,
                   hd::schedule::gpipe({.ranks = 2, .microbatches = live, .sizes = sizes}), mesh,
                   options);
  hd::Runner early(
      our_model,
      hd::schedule::dapple(
          {.ranks = 2, .microbatches = microbatches, .most_live = live, .sizes = sizes}),
      mesh, options);
  compare(
      "pipeline/executed_dapple", "gpipe_equal_memory", mesh, their_model, our_model,
      [&] {
        for (int done = 0; done < microbatches; done += live) gpipe.step();
        gpipe.drain();
      },
      [&] {
        early.step();
        early.drain();
      });
}

/// 1F1B with as many microbatches as ranks and F = I = W.
void two_bp() {
  hd::DeviceMesh mesh(MPI_COMM_WORLD, {{"pipe", 4}});
  const hd::Orders orders = hd::schedule::one_f_one_b(4, 4);
  WaitingModel their_model, our_model;
  hd::Runner fused(their_model, hd::weave(orders, sizes), mesh, options);
  hd::Runner split(our_model, hd::weave(hd::schedule::two_bp(orders), sizes), mesh, options);
  compare(
      "pipeline/executed_2bp", "fused_backward", mesh, their_model, our_model,
      [&] {
        fused.step();
        fused.drain();
      },
      [&] {
        split.step();
        split.drain();
      });
}

/// 64 requests through 4 stages; a transfer takes a quarter of a stage. Both run over links that
/// give a result's memory back when they have carried it; the blocking pipeline has one place for
/// results, so that a stage cannot begin the next before.
void energon() {
  constexpr int stages = 4, requests = 64;
  const hd::Link link{.latency = 0, .bandwidth = static_cast<double>(sizes.activation) / transfer};
  const hd::Shape shape{.link = [link](hd::Rank, hd::Rank, hd::Seconds) { return link; },
                        .buffers = false};
  hd::DeviceMesh their_mesh(MPI_COMM_WORLD, {{"pipe", stages}});
  hd::DeviceMesh our_mesh(MPI_COMM_WORLD, {{"pipe", stages}});
  hd::ShapedTransport their_links(their_mesh.transport(), shape);
  hd::ShapedTransport our_links(our_mesh.transport(), shape);
  WaitingModel their_model, our_model;
  const auto schedule = [](int depth) {
    return hd::systems::energon(
        {.ranks = stages, .requests = requests, .depth = depth, .sizes = sizes});
  };
  hd::Runner blocking(their_model, schedule(0), their_links, options);
  hd::Runner non_blocking(our_model, schedule(1), our_links, options);
  compare(
      "pipeline/executed_energon", "blocking_sends", our_mesh, their_model, our_model,
      [&] {
        blocking.step();
        blocking.drain();
      },
      [&] {
        non_blocking.step();
        non_blocking.drain();
      });
}

}  // namespace

int main(int argc, char** argv) {
  hd::Environment env(argc, argv);
  try {
    int ranks = 0;
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    hd::expects(ranks == 2 || ranks == 4, [&] {
      return hd::ErrorInfo{"pipeline/executed", "it runs on 2 ranks or on 4",
                           hd::text(ranks, " ranks")};
    });
    if (ranks == 2) {
      dapple();
    } else {
      two_bp();
      energon();
    }
  } catch (const std::exception& error) {
    std::cerr << "pipeline/executed: " << error.what() << '\n';
    MPI_Abort(MPI_COMM_WORLD, 1);
  }
}
