// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// ReplicaSum: sums the gradients of replicas by MPI, as one action of a schedule.

#include <functional>

#include <mpi.h>

#include <heddle/comm/communicator.hpp>
#include <heddle/core/linkage.hpp>
#include <heddle/core/units.hpp>
#include <heddle/execute/execute_options.hpp>
#include <heddle/execute/task.hpp>
#include <heddle/execute/transport_ref.hpp>
#include <heddle/pipeline/impl/any_stage.hpp>

namespace heddle::inline v0::impl {

/// The sum of the gradients of a group action over the ranks of a communicator.
struct ReplicaSum {
  const Communicator* replicas = nullptr;  ///< null if the place has none
  bool by_stages = false;  ///< true if the stages of a plan sum their gradients themselves
  /// The function to call when this rank has reached `task` at time `since`. It throws if another
  /// rank has failed or is late.
  std::function<void(const Task& task, Seconds since)> look_up = {};

  /// Sets `look_up` for the ranks `replicas` of `all`.
  void watch(const TransportRef& transport, const ExecuteOptions& options, MPI_Comm all);
  /// Performs a group action of stages with these traits.
  void operator()(const Task& task, const StageTraits& traits) const;
};

}  // namespace heddle::inline v0::impl

#if HEDDLE_DEFINES_PIPELINE
#include <heddle/pipeline/impl/replica_sum.ipp>
#endif
