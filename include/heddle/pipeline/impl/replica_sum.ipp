// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// Definitions of replica_sum.hpp.

#include <optional>

#include <heddle/comm/internal/roll_call.hpp>
#include <heddle/core/contract.hpp>
#include <heddle/core/error.hpp>
#include <heddle/core/linkage.hpp>
#include <heddle/core/text.hpp>
#include <heddle/execute/await.hpp>
#include <heddle/execute/clock.hpp>
#include <heddle/pipeline/impl/replica_sum.hpp>
#include <heddle/schedule/action_text.hpp>

namespace heddle::inline v0::impl {

HEDDLE_FULL_INLINE void ReplicaSum::watch(const TransportRef& transport,
                                          const ExecuteOptions& options, MPI_Comm all) {
  look_up = [transport, options, all, &replicas = *replicas](const Task& task, Seconds since) {
    const auto where = [&] {
      return text("heddle::Stages, rank ", transport.rank(), " at ",
                  schedule::action_text(task.schedule(), task.id()),
                  ", the sum of gradients by MPI");
    };
    if (const std::optional<Abort> abort = transport.aborted()) throw lost(where(), *abort);
    const bool late = options.watchdog > 0 && steady_seconds() - since > options.watchdog;
    if (late || RollCall::begun(replicas))
      throw RollCall(replicas, all)
          .stuck(where(), options, late,
                 "see what that replica is doing, or raise ExecuteOptions::watchdog");
  };
}

HEDDLE_FULL_INLINE void ReplicaSum::operator()(const Task& task, const StageTraits& traits) const {
  if (by_stages) return;
  expects(replicas != nullptr, [] {
    return ErrorInfo{"heddle::Stages",
                     "a group action needs a DeviceMesh to run on",
                     {},
                     "give Runner a DeviceMesh or a PlannedMesh, or use GradientSum::ring"};
  });
  const BoundUse& use = task.uses()[0];
  traits.space->sum_over_ranks(traits.type, use.data, use.bytes, *replicas,
                               [&, since = steady_seconds()] { look_up(task, since); });
}

}  // namespace heddle::inline v0::impl
