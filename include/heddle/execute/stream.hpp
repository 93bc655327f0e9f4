// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// stream(): plain functions as a pipeline over threads of one process. Tokens travel in batches,
/// which are the items of a Schedule. Needs neither MPI nor Kokkos.

#include <algorithm>
#include <cstdint>
#include <numeric>
#include <tuple>
#include <utility>
#include <vector>

#include <heddle/core/contract.hpp>
#include <heddle/core/text.hpp>
#include <heddle/execute/clock.hpp>
#include <heddle/execute/impl/choose_stream_plan.hpp>
#include <heddle/execute/impl/stream_model.hpp>
#include <heddle/execute/runner.hpp>
#include <heddle/execute/thread_transport.hpp>
#include <heddle/schedule/generator/shared_stream.hpp>

namespace heddle::inline v0 {

/// How stream() divides the work, and how much of it may be under way.
struct StreamOptions {
  int threads = 2;            ///< at most, where the plan is to be chosen
  std::uint32_t batch = 64;   ///< tokens that travel together: fewer for latency, more for speed
  std::uint32_t waiting = 8;  ///< batches that may wait between two threads
  /// Who does what; chosen by what the first batches take where it has no stages.
  schedule::StreamPlan plan = {.stages = {}};
  Idle idle = Idle::yield;  ///< how far a waiting thread gives up its core
};

/// Marks a stage of a stream() that may be called for several batches at once: it keeps no state,
/// or guards it. Its tokens go on in order.
template <class Function>
[[nodiscard]] ParallelStage<Function> parallel(Function function) {
  return {std::move(function)};
}

/// Calls `source` until it returns an empty optional, and hands every token through the functions,
/// each of which takes what the one before it returns; what the last one returns is dropped. A
/// stage is called for one token after the other, in their order, though not always by the same
/// thread; parallel() stages may be called for several at once. Returns the number of tokens.
///
/// Without a plan the calling thread does the first batches alone (for a millisecond, four batches
/// at least). What they take, and what a word between threads takes, is put into the simulator with
/// every plan over at most so many threads, and the fastest one goes on: one thread where batches
/// are too small to be worth a second one.
///
/// Tokens are trivially copyable and aligned to at most 64 bytes, or it does not compile (send an
/// index or a pointer for what is not). They stay where they were made until the next stage has
/// read them. A batch leaves when it is full or the source ends, so that a slow source wants a
/// small one.
///
/// What a stage throws is thrown here, when all threads have stopped; tokens under way are lost.
/// @throws contract_error for options that make no pipeline.
template <class Source, class... Functions>
requires(sizeof...(Functions) >= 1) std::uint64_t
    stream(const StreamOptions& options, Source source, Functions... functions) {
  using Model = impl::StreamModel<Source, Functions...>;
  constexpr int stages = static_cast<int>(Model::stages);
  constexpr std::uint32_t most = 1 << 16;  // of batches that wait: a step has twice as many
  expects(
      options.threads >= 1 && options.batch >= 1 && options.waiting >= 1 && options.waiting <= most,
      [&] {
        return Complaint{
            "heddle::stream",
            text("threads, batch and waiting are at least one, waiting at most ", most),
            text("threads = ", options.threads, ", batch = ", options.batch,
                 ", waiting = ", options.waiting)};
      });
  expects(
      options.plan.lanes >= 1 &&
          std::uint64_t{options.waiting} * static_cast<std::uint64_t>(options.plan.lanes) <= most,
      [&] {
        return Complaint{
            "heddle::stream",
            text("at least one lane, and at most ", most, " batches that wait in all of them"),
            text(options.plan.lanes, " lanes, waiting = ", options.waiting)};
      });
  const std::vector<int>& division = options.plan.stages;
  const int named = std::accumulate(division.begin(), division.end(), 0);
  expects(division.empty() || named == stages, [&] {
    return Complaint{"heddle::stream", "the plan does not share out all stages",
                     text("it names ", named, " of ", stages)};
  });

  impl::SourceState state;
  const auto model = [&] { return Model(state, source, std::tie(functions...), options.batch); };
  ThreadHub alone(1);
  ThreadTransport here(alone, Rank{0});
  schedule::StreamPlan plan = options.plan;
  if (division.empty()) {
    plan.stages = {stages};
    if (options.threads > 1) {
      const Seconds begin = steady_seconds();
      Model mine = model();
      Runner run(mine, schedule::shared_stream(plan, 2), here, {.execute = {.record = true}});
      run.profile(false);  // everything is cold in the first step
      run.step();
      run.profile(true);
      do run.step();
      while (!state.ended && steady_seconds() - begin < 1e-3);
      if (state.ended) return state.made;
      TableCosts measured = run.costs();
      impl::StreamCosts costs{.stage = {}, .handover = impl::handover_time()};
      for (int s = 0; s < stages; ++s) costs.stage.push_back(measured.at(Kind::F, Stage{s}));
      plan = impl::choose_stream_plan(costs, Model::parallel(), options.threads);
    }
  }
  // Several batches a step, and storage for those that wait: no thread stops where a step ends.
  const Schedule schedule = schedule::shared_stream(
      plan, plan.lanes * 2 * static_cast<int>(options.waiting), Model::parallel());
  const auto work = [&](ThreadTransport& transport) {
    Model mine = model();
    Runner run(mine, schedule, transport,
               {.execute = {.idle = options.idle, .watchdog = 0}, .slack = options.waiting});
    // The step in which the source ends is followed by one that is over for all threads.
    do run.step();
    while (!mine.over());
    run.drain();
  };
  if (schedule.ranks() == 1)
    work(here);
  else
    run_threads(schedule.ranks(), work);
  return state.made;
}

}  // namespace heddle::inline v0
