// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// kFkB: k forwards, then k backwards. A form of 1F1B for slow networks, as Orders and as a
/// Schedule.

#include <heddle/core/linkage.hpp>
#include <heddle/schedule/order/orders.hpp>
#include <heddle/schedule/schedule.hpp>
#include <heddle/schedule/stage_storage.hpp>

namespace heddle::inline v0::schedule {

/// Options of a pipeline with one stage per rank that computes its microbatches in groups.
struct KfkbOptions {
  int ranks = 1;          ///< number of ranks, each with one stage
  int microbatches = 1;   ///< in a step, a multiple of `group`
  int group = 2;          ///< k: the microbatches of a group; 1 is 1F1B
  StageSizes sizes = {};  ///< sizes of what a stage keeps and sends
};

/// Returns the orders of 1F1B over M/k groups of k microbatches each (Wang et al., "Ada-Grouper",
/// 2023). Every transfer except that of a group's last microbatch can hide behind computations of
/// the group. If transfers take no time, the bubble is (P - 1)(F + B) for every k. Rank r has
/// k min(M/k, P - r) live activations.
///
/// @throws infeasible if M is not a multiple of k; the error names the nearest valid M.
/// @throws contract_error if there is no stage or no microbatch, or if `group` is below 1.
[[nodiscard]] Orders kfkb(int ranks, int microbatches, int group);

/// Returns the Schedule that weave() makes of the Orders of kfkb().
[[nodiscard]] Schedule kfkb(const KfkbOptions& options);

}  // namespace heddle::inline v0::schedule

#if HEDDLE_DEFINES_SCHEDULE_GENERATOR
#include <heddle/schedule/generator/kfkb.ipp>
#endif
