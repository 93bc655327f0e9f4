// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// weave(): Orders to Schedule. Names the storage of every stage, inserts the moves between ranks,
/// and refuses orders that cannot progress.

#include <heddle/core/linkage.hpp>
#include <heddle/schedule/order/orders.hpp>
#include <heddle/schedule/schedule.hpp>
#include <heddle/schedule/stage_storage.hpp>

namespace heddle::inline v0 {

/// The Schedule in which every rank computes in its order and each value that another rank needs is
/// moved there as soon as it exists. A training order (one with backward actions) ends with one
/// update per stage, unless it holds updates itself: then the weights have a part for each version
/// that is in use at once, and the B of a microbatch reads the version that its F read.
///
/// Uses of an action, in this order: F [inputs, output, saved, weights]; I, W and B [inputs, saved,
/// output_grads, exchanged, weights, input_grads (I, B), delta (I, W), gradients (W, B)]; update
/// [gradients, weights], or [gradients, weights read, weights written] where the new version lies
/// in another part. The first backward action of a stage after an update `write`s its gradients,
/// the later ones and the update, which may use them up, `update` them. Before the update of a
/// stage that is on several ranks stands one group action over its gradients.
///
/// @throws infeasible if the orders cannot progress; it names an action that is missing or comes
///         too early, if there is one, and what every stuck head waits for.
/// @throws contract_error for an action twice, a stage on no rank, or on two ranks where the graph
///         has no replicas, a microbatch that a stage does not finish, a fused entry without a
///         partner.
[[nodiscard]] Schedule weave(const Orders& orders, const StageSizes& sizes = {});

}  // namespace heddle::inline v0

#if HEDDLE_HEADER_ONLY
#include <heddle/schedule/order/weave.ipp>
#endif
