// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// balance(): divides a range among unequal workers by their measured speed, with one thread for
/// each worker. It is for hybrid CPUs, and for a host that works beside its device. It needs
/// neither Kokkos nor MPI.

#include <cstdint>
#include <vector>

#include <heddle/core/index.hpp>
#include <heddle/core/internal/function_ref.hpp>
#include <heddle/core/linkage.hpp>
#include <heddle/core/units.hpp>
#include <heddle/plan/speed_ratios.hpp>

namespace heddle::inline v0::pattern {

/// The result of a call of balance(): the items and the time of each worker. A worker without items
/// has the time 0.
struct BalancedRound {
  std::vector<plan::ItemRange> ranges;  ///< the items of each worker
  std::vector<Seconds> times;           ///< the time that each worker took
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
/// Throws the exception of `work` after all workers have ended; if several threw, that of the
///         lowest worker. `ratios` are unchanged then. Also contract_error in the cases of
///         SpeedRatios::split(), and std::system_error, before any work, if the system does not
///         start the threads.
BalancedRound balance(plan::SpeedRatios& ratios, std::int64_t items,
                      heddle::impl::FunctionRef<void(Worker, plan::ItemRange)> work);

}  // namespace heddle::inline v0::pattern

#if HEDDLE_DEFINES_PATTERN
#include <heddle/pattern/balance.ipp>
#endif
