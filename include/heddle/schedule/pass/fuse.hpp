// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// fuse(): makes pairs of a forward and the backward after it. A stage can interleave the two, so
/// that one computes while the other communicates. DualPipe does this for its own order; fuse()
/// does it for any orders.

#include <heddle/core/linkage.hpp>
#include <heddle/schedule/order/orders.hpp>

namespace heddle::inline v0::schedule {

/// Returns `orders` with every F fused with the B that follows it on its rank, unless the ranks
/// would then wait for each other. A pair starts when both of its halves can start, and its results
/// are available when both halves are done. A B is therefore never fused with a forward that it
/// needs, directly or through other ranks. Existing pairs stay.
///
/// The costs say how long a pair takes (FusedCosts). If a pair takes as long as its halves
/// together, fusing has no advantage, and delayed forwards may make the step longer. simulate()
/// shows the effect.
///
/// An executor calls its handler for one half after the other, as soon as each half can start. It
/// sends the results when both halves are done. If a stage has forward_and_backward(), it is called
/// once for both halves, when PipelineStage says so.
///
/// Split backwards are not fused. Call merge_backward() first to fuse them.
///
/// @throws infeasible if the orders have a fault; see first_fault().
[[nodiscard]] Orders fuse(const Orders& orders);

}  // namespace heddle::inline v0::schedule

#if HEDDLE_DEFINES_SCHEDULE_PASS
#include <heddle/schedule/pass/fuse.ipp>
#endif
