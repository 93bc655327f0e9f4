// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// balance(): divides a range among unequal workers by their measured speed, with one thread for
/// each worker. It is for hybrid CPUs, and for a host that works beside its device. It needs
/// neither Kokkos nor MPI.

#include <algorithm>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <vector>

#include <heddle/core/impl/threads.hpp>
#include <heddle/core/index.hpp>
#include <heddle/core/units.hpp>
#include <heddle/execute/clock.hpp>
#include <heddle/plan/speed_ratios.hpp>

namespace heddle::inline v0 {

/// The result of a call of balance(): the items and the time of each worker. A worker without items
/// has the time 0.
struct BalancedRound {
  std::vector<ItemRange> ranges;  ///< the items of each worker
  std::vector<Seconds> times;     ///< the time that each worker took
};

/// Divides the range [0, items) among the workers by `ratios`, and runs `work(worker, range)` for
/// every worker that gets items. Worker 0 runs in the calling thread, and each other worker in a
/// thread of its own. The call waits for all workers, and updates `ratios` with their times by the
/// steady clock. A worker that uses a device must fence before it returns.
///
/// Starting a thread takes some tens of microseconds, so each call should take milliseconds. The
/// library does not bind threads to cores. If a worker must run on a certain core, `work` must bind
/// its thread.
///
/// @throws the exception of `work` after all workers have ended; if several threw, that of the
///         lowest worker. `ratios` are unchanged then. Also contract_error in the cases of
///         SpeedRatios::split(), and std::system_error, before any work, if the system does not
///         start the threads.
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
  std::vector<std::size_t> with_thread;
  for (std::size_t w = 1; w < workers; ++w)
    if (round.ranges[w].size() > 0) with_thread.push_back(w);
  {
    impl::Threads others(static_cast<int>(with_thread.size()),
                         [&](int i) { run(with_thread[static_cast<std::size_t>(i - 1)]); });
    others.begin_all("heddle::balance");
    run(0);
  }
  for (const std::exception_ptr& error : errors)
    if (error) std::rethrow_exception(error);
  ratios.observe(round.ranges, round.times);
  return round;
}

}  // namespace heddle::inline v0
