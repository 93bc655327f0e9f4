// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// shard_updates(): divides updates over the ranks that sum the gradients, as ZeRO stage 1 does.

#include <heddle/core/linkage.hpp>
#include <heddle/schedule/schedule.hpp>

namespace heddle::inline v0::schedule {

/// Returns `schedule` in which ranks that sum a gradient divide the update behind the sum. A group
/// action over the gradients of n ranks, and their n updates, become these actions. Gradients and
/// weights are cut in n blocks.
/// - A reduce-scatter: every rank sends n - 1 blocks of its gradients, each to the rank that
///   updates the block. This rank adds what it receives to its own block.
/// - Rank i updates block i of its weights with block i of its gradients.
/// - An all-gather: every rank sends its block of the weights to the n - 1 others.
///
/// Every rank sends 2 (n - 1) blocks, as many bytes as in a ring's all-reduce. Sums have the same
/// order in every run. Gradients of other blocks are not sums afterwards.
///
/// The messages of the reduce-scatter stand in the list before the next work of one of the ranks
/// behind the group action, so that messages of the last backward are sent first. All else follows
/// before the next sum of any of these ranks, or at the end. Behind eager_updates(), a rank
/// therefore computes the backward passes of the next bucket while the messages of the last one are
/// in flight.
///
/// @throws contract_error if a rank that sums a gradient does not update its weights exactly once,
///         in place and behind the sum, or if its gradients and weights differ in size.
[[nodiscard]] Schedule shard_updates(const Schedule& schedule);

}  // namespace heddle::inline v0::schedule

#if HEDDLE_DEFINES_SCHEDULE_PASS
#include <heddle/schedule/pass/shard_updates.ipp>
#endif
