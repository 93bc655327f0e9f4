// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// What measure_collectives() times: the call that a choice leads to.

#include <functional>
#include <memory>
#include <vector>

#include <heddle/collective/call_options.hpp>
#include <heddle/collective/internal/block_counts.hpp>
#include <heddle/collective/internal/instance.hpp>
#include <heddle/comm/communicator.hpp>
#include <heddle/core/linkage.hpp>
#include <heddle/core/units.hpp>
#include <heddle/plan/collective_choice.hpp>
#include <heddle/plan/cost_table.hpp>
#include <heddle/schedule/collective/algorithm.hpp>

namespace heddle::inline v0::impl {

class Call;

/// The instances of the calls that are timed: one moves floats, the other one adds them.
struct TimedInstances {
  const Instance& moves;
  const Instance& adds;
};

/// Calls of one collective of so many bytes of floats, all in the same memory: none finds it in a
/// cache that another one has not. Zeros, which stay zeros.
class TimedCalls {
 public:
  /// Over `comm` and from root 0, in schedules for the machine of `costs`. It refers to `by` and
  /// `comm`.
  TimedCalls(const TimedInstances& by, schedule::Collective collective, Bytes bytes,
             const Communicator& comm, std::shared_ptr<const plan::CostTable> costs,
             Seconds watchdog);

  /// Returns the call as `choice` has it.
  [[nodiscard]] std::function<void()> operator()(const plan::CollectiveChoice& choice) const;

 private:
  /// Returns the call, not checked yet.
  [[nodiscard]] std::unique_ptr<Call> call() const;

  TimedInstances m_by;
  schedule::Collective m_collective;
  BlockCounts m_blocks;
  const Communicator* m_comm;
  std::shared_ptr<const plan::CostTable> m_costs;
  CallOptions m_options;
  CallOptions m_counted;  ///< with the counts of blocks that are not even
  Room m_in;
  Room m_out;
};

/// The least value that nine tenths of `sample` do not exceed.
[[nodiscard]] double nine_tenths(std::vector<double> sample);

/// Times of `calls`, which take turns. Of the first one the median of the slowest rank's; of every
/// other one what it takes at most in nine rounds of ten, compared with the first one of the same
/// round. So one that is not clearly faster is not taken for faster, however much times vary. The
/// rounds end with the budget, but not before there are enough of them to say so.
[[nodiscard]] std::vector<Seconds> time_in_turns(const std::vector<std::function<void()>>& calls,
                                                 Seconds budget, const Communicator& comm);

}  // namespace heddle::inline v0::impl

#if HEDDLE_DEFINES_COLLECTIVE
#include <heddle/collective/impl/timed_calls.ipp>
#endif
