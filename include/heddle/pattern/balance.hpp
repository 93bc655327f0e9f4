// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// balance(): a range divided among unequal workers by their measured speed, one thread for each.
/// For hybrid CPUs, and for a host that works beside its device. Needs neither Kokkos nor MPI.

#include <algorithm>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <thread>
#include <vector>

#include <heddle/core/index.hpp>
#include <heddle/core/units.hpp>
#include <heddle/execute/clock.hpp>
#include <heddle/plan/speed_ratios.hpp>

namespace heddle::inline v0 {

/// Who did what in a call of balance(), by worker. A worker without items took 0 s.
struct BalancedRound {
  std::vector<ItemRange> ranges;  ///< the items of each worker
  std::vector<Seconds> times;     ///< the time that each worker took
};

/// Runs `work(worker, range)` for every worker that `ratios` gives items of [0, items), worker 0 on
/// the calling thread and each other on a thread of its own; waits for all, and teaches `ratios`
/// what they took by the steady clock. A worker that drives a device fences before it returns.
///
/// Starting threads takes some tens of microseconds a worker, so let a round take milliseconds. The
/// library binds no thread to a core: where workers are to be certain cores, `work` does that.
///
/// @throws what `work` threw, for the first such worker, when all have ended; `ratios` are then as
///         before. contract_error as SpeedRatios::split.
template <std::invocable<Worker, ItemRange> Work>
BalancedRound balance(SpeedRatios& ratios, std::int64_t items, Work&& work) {
  BalancedRound round{ratios.split(items), {}};
  const std::size_t workers = round.ranges.size();
  round.times.resize(workers);
  std::vector<std::exception_ptr> errors(workers);
  const auto run = [&](std::size_t w) {
    if (round.ranges[w].size() == 0) return;
    try {
      const Seconds begin = steady_seconds();
      work(Worker{w}, round.ranges[w]);
      // Less than a tick of the clock is one tick: no worker is infinitely fast.
      round.times[w] = std::max(steady_seconds() - begin, Seconds{1e-9});
    } catch (...) {
      errors[w] = std::current_exception();
    }
  };
  {
    std::vector<std::jthread> threads;
    for (std::size_t w = 1; w < workers; ++w)
      if (round.ranges[w].size() > 0) threads.emplace_back(run, w);
    run(0);
  }
  for (const std::exception_ptr& error : errors)
    if (error) std::rethrow_exception(error);
  ratios.observe(round.ranges, round.times);
  return round;
}

}  // namespace heddle::inline v0
