// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// eager_sums(), eager_updates() and lazy_sums(): sum the gradients of replicas as soon as they
/// exist, or at the end.

#include <heddle/core/linkage.hpp>
#include <heddle/schedule/schedule.hpp>

namespace heddle::inline v0::schedule {

/// Returns `schedule` with every group action as early in the list as its uses allow, in local lane
/// 1. Sums then run while other stages still compute backward passes. An executor reaches the sums
/// in list order, so a rank that is ahead of its replicas waits for them at a sum.
[[nodiscard]] Schedule eager_sums(const Schedule& schedule);

/// Returns `schedule` with every group action and every update as early in the list as its uses
/// allow, in local lane 1. If a rank has several stages, the weights of one are updated while the
/// rank still computes backward passes of another one.
[[nodiscard]] Schedule eager_updates(const Schedule& schedule);

/// Returns `schedule` with every group action as late as the updates allow, in local lane 0. No
/// backward pass waits for a sum, but no sum overlaps with a backward pass.
[[nodiscard]] Schedule lazy_sums(const Schedule& schedule);

}  // namespace heddle::inline v0::schedule

#if HEDDLE_DEFINES_SCHEDULE_PASS
#include <heddle/schedule/pass/gradient_sum.ipp>
#endif
