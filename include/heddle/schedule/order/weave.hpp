// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// weave(): makes a Schedule from Orders. It creates the storage of every stage, inserts the moves
/// between ranks, and rejects orders that cannot progress.

#include <heddle/core/linkage.hpp>
#include <heddle/schedule/order/orders.hpp>
#include <heddle/schedule/schedule.hpp>
#include <heddle/schedule/stage_storage.hpp>

namespace heddle::inline v0 {

/// Returns the Schedule in which every rank computes in its order. A value that another rank needs
/// is moved there as soon as it exists. Training orders (orders with backward actions) end with one
/// update per stage, unless they contain updates themselves. In this case the weights have a part
/// for each version that is in use at the same time, and the B of a microbatch reads the version
/// that its F read.
///
/// The uses of an action are, in this order (a pass may change the order, but not that of uses with
/// the same Role, which is the order of the graph's edges):
///
/// - F: inputs, output, saved, weights;
/// - I, W and B: inputs, saved, output_grads, exchanged, weights, input_grads (I, B), delta (I, W),
///   gradients (W, B);
/// - update: gradients, weights; or gradients, weights read, weights written if the new version is
///   in another part.
///
/// The first backward action of a stage after an update `write`s its gradients. The later ones
/// `update` them, and so does the update, which may overwrite them. If a stage is on several ranks,
/// a group action over its gradients precedes its update.
///
/// If the orders have StageShares, a microbatch is cut into granules at the samples where the share
/// of a rank of a stage, or of a stage connected with it, begins or ends. The parts of a buffer are
/// the granules of all microbatches, one microbatch after another. For each two connected shares
/// that have samples in common, weave() adds one move of these samples forward, and one of their
/// gradients back. `sizes` are still the bytes of a whole microbatch. If a rank computes two
/// connected shares, it reads the value in place, or gets a copy of it beside values of other
/// ranks.
///
/// @throws infeasible if the orders cannot progress. It names a missing or early action, if there
///         is one, and the action that every blocked head waits for.
/// @throws contract_error if an action appears twice, if a stage is on no rank, or on two ranks
///         although the graph has no replicas, if a stage does not finish a microbatch, if a fused
///         entry has no partner, if the shares do not fit (see StageShares), or if a part would not
///         have whole elements for every sample.
[[nodiscard]] Schedule weave(const Orders& orders, const StageSizes& sizes = {});

}  // namespace heddle::inline v0

#if HEDDLE_DEFINES_SCHEDULE
#include <heddle/schedule/order/weave.ipp>
#endif
