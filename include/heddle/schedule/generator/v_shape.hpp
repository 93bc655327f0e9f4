// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// V-shaped zero-bubble schedules: ZB-V, V-half and V-min. The first and the last stage share a
/// rank. The ranks therefore have equal numbers of live activations, and the schedule chooses this
/// number.

#include <heddle/core/linkage.hpp>
#include <heddle/schedule/generator/pipeline.hpp>
#include <heddle/schedule/order/orders.hpp>
#include <heddle/schedule/schedule.hpp>

namespace heddle::inline v0::schedule {

/// Returns the orders of ZB-V (Qi et al., "Zero bubble pipeline parallelism", ICLR'24), in the
/// order of torch.distributed.pipelining. Rank r holds the stages r and 2P - 1 - r. If F = I = W
/// per stage and M >= 2P - 1, no rank is idle between its first and its last action, and the step
/// takes the time of 6 M + P - 1 actions. Every rank has 2P live activations, which is the memory
/// of 1F1B with P stages.
///
/// The published order is made for at least 2P - 1 microbatches. If M <= P, memory sets no limit,
/// and each rank instead computes what is furthest. If F = I = W, that step is up to a quarter
/// shorter, and for M = P it takes the time of 6 M + P - 1 actions. `published` keeps the order of
/// torch also there.
/// @throws contract_error if there is no rank or no microbatch.
[[nodiscard]] Orders zb_v(int ranks, int microbatches, bool published = false);

/// Returns the orders of V-half (Qi et al., "Pipeline parallelism with controllable memory",
/// NeurIPS'24), which has about half the memory of 1F1B and half its bubble. ZB-V keeps 2P
/// activations per rank. V-half keeps at most P + 1 if P is odd and P + 2 if P is even. For
/// F = I = W = 1 per stage and M >= P >= 3, the bubble is 3P - 4 if P is odd and 3P - 7 if P is
/// even.
///
/// The passage of the microbatches repeats as published, and its two ends are squeezed. For P <= 2
/// and M >= 2P - 1, ZB-V keeps no more activations, so the orders are those of ZB-V.
/// @throws contract_error if there is no rank or no microbatch.
[[nodiscard]] Orders v_half(int ranks, int microbatches);

/// Returns the orders of V-min (the same source), which has about a third of the memory of 1F1B and
/// two thirds of its bubble. Every rank keeps at most 2 ceil((P + 2) / 3) activations. For
/// F = I = W = 1 per stage and M >= P >= 2, the bubble is 4P - 7 if P is a multiple of 3 and 4P - 5
/// otherwise. All steps between ranks are 1 slot. With unequal F, I and W the bubble grows with M.
///
/// For M >= P, the orders are those of V-half if no rank keeps more activations in them, because
/// V-half is shorter. This is so for P = 3. plan::coordinate() chooses among ZB-V, V-half and V-min
/// for given costs and a given memory.
/// @throws contract_error if there is no rank or no microbatch.
[[nodiscard]] Orders v_min(int ranks, int microbatches);

/// Returns the Schedule that weave() makes of the Orders of zb_v().
[[nodiscard]] Schedule zb_v(const PipelineOptions& options);
/// Returns the Schedule that weave() makes of the Orders of v_half().
[[nodiscard]] Schedule v_half(const PipelineOptions& options);
/// Returns the Schedule that weave() makes of the Orders of v_min().
[[nodiscard]] Schedule v_min(const PipelineOptions& options);

}  // namespace heddle::inline v0::schedule

#if HEDDLE_DEFINES_SCHEDULE_GENERATOR
#include <heddle/schedule/generator/v_shape.ipp>
#endif
