// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// Zero-bubble schedules without a fold: ZB-H1, ZB-H2 and interleaved ZB1P. The backward pass is
/// split. I runs at once because other ranks wait for it. W runs when a rank would otherwise be
/// idle, because no rank waits for it.

#include <heddle/core/linkage.hpp>
#include <heddle/schedule/generator/pipeline.hpp>
#include <heddle/schedule/order/orders.hpp>
#include <heddle/schedule/schedule.hpp>

namespace heddle::inline v0::schedule {

/// Returns the orders of ZB-H1 (Qi et al., "Zero bubble pipeline parallelism", ICLR'24), in the
/// order of torch.distributed.pipelining. It has the memory of 1F1B, min(M, P) live activations on
/// every rank. If M > P, the idle time of the first rank is (P - 1) max(F, I, F + I - W). Qi et
/// al. give (P - 1)(F + I - W) for F and I of at least W; the other cases were found by simulation.
///
/// If M <= P, memory sets no limit, and the orders are those of zb_h2(), which are no longer
/// than torch's. Those of torch are interleaved_zb1p() with one stage per rank.
/// @throws contract_error if there is no stage or no microbatch.
[[nodiscard]] Orders zb_h1(int ranks, int microbatches);

/// Returns the orders of ZB-H2 (the same source), which computes twice as many forwards ahead as
/// ZB-H1. Every rank has min(M, 2P - 1) live activations, for a smaller bubble. If
/// M >= 2P - 1, the first rank is idle for (P - 1) max(0, F + I - 2W, I - F) between its first and
/// its last action. With fewer microbatches, memory sets no limit. I then goes before F, and W runs
/// if a rank would otherwise be idle. If F = I = W, that step takes the time of 3 M + P - 1 actions
/// if M >= P.
/// @throws contract_error if there is no stage or no microbatch.
[[nodiscard]] Orders zb_h2(int ranks, int microbatches);

/// Returns the orders of interleaved ZB1P, the InterleavedZeroBubble of
/// torch.distributed.pipelining: ZB-H1 with several stages on every rank, in the rounds of R
/// microbatches of interleaved(). Every rank has min(M V, (V - 1) R + P) live activations of
/// chunks, and each of them is 1/V of a rank's activation. This is the memory of 1F1B if P divides
/// M.
///
/// @throws infeasible if M is not a multiple of M div P; the error names the nearest valid M.
/// @throws contract_error if there is no stage or no microbatch.
[[nodiscard]] Orders interleaved_zb1p(int ranks, int stages_per_rank, int microbatches);

/// Returns the Schedule that weave() makes of the Orders of zb_h1().
[[nodiscard]] Schedule zb_h1(const PipelineOptions& options);
/// Returns the Schedule that weave() makes of the Orders of zb_h2().
[[nodiscard]] Schedule zb_h2(const PipelineOptions& options);
/// Returns the Schedule that weave() makes of the Orders of interleaved_zb1p().
[[nodiscard]] Schedule interleaved_zb1p(const InterleavedOptions& options);

}  // namespace heddle::inline v0::schedule

#if HEDDLE_DEFINES_SCHEDULE_GENERATOR
#include <heddle/schedule/generator/zero_bubble.ipp>
#endif
