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
/// The uses of an action are, in this order:
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
/// @throws infeasible if the orders cannot progress. It names a missing or early action, if there
///         is one, and the action that every blocked head waits for.
/// @throws contract_error if an action appears twice, if a stage is on no rank, or on two ranks
///         although the graph has no replicas, if a stage does not finish a microbatch, or if a
///         fused entry has no partner.
[[nodiscard]] Schedule weave(const Orders& orders, const StageSizes& sizes = {});

}  // namespace heddle::inline v0

#if HEDDLE_HEADER_ONLY
#include <heddle/schedule/order/weave.ipp>
#endif
