// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// DualPipe and DualPipeV: microbatches enter at both ends of a pipeline, or at one end of a
/// pipeline folded to a V. Where two of them meet, the forward of one is fused with the backward of
/// the other. A stage can then compute for one while it communicates for the other. See fuse() for
/// the meaning of a fused pair.

#include <heddle/core/linkage.hpp>
#include <heddle/schedule/generator/pipeline.hpp>
#include <heddle/schedule/order/orders.hpp>
#include <heddle/schedule/schedule.hpp>

namespace heddle::inline v0::schedule {

/// Returns the orders of DualPipe (DeepSeek-AI, "DeepSeek-V3 technical report", 2024, and the step
/// counts of its released code). P is even. Rank r holds the stages r and P - 1 - r, so every stage
/// is on two ranks. The microbatches 0 to M/2 - 1 go from rank 0 to rank P - 1, and the others go
/// in the opposite direction. Every rank has P + 1 live activations.
///
/// The largest idle time of a rank is (P / 2 - 1)(FB + B - 3W), where FB is the time of a fused
/// pair (the README of DeepSeek-AI's DualPipe). It is exact if F = I >= W and FB is between B and
/// F + B, a range that was found by simulation.
///
/// @throws infeasible if the number of stages is odd, or if the number of microbatches is odd or
///         below 2P; the error names the nearest valid number.
/// @throws contract_error if there is no stage or no microbatch.
[[nodiscard]] Orders dualpipe(int ranks, int microbatches);

/// Returns the orders of DualPipeV (the same source, "cut in half"): DualPipe's order on a pipeline
/// folded to a V, where rank r holds the stages r and 2P - 1 - r and no stage has a copy. Every
/// rank has 2P + 1 live activations. Its idle time is that of DualPipe with 2P stages.
///
/// @throws infeasible if there are fewer than 2P microbatches; the error names the nearest valid
///         number.
/// @throws contract_error if there is no rank or no microbatch.
[[nodiscard]] Orders dualpipe_v(int ranks, int microbatches);

/// Returns the Schedule that weave() makes of the Orders of dualpipe().
[[nodiscard]] Schedule dualpipe(const PipelineOptions& options);
/// Returns the Schedule that weave() makes of the Orders of dualpipe_v().
[[nodiscard]] Schedule dualpipe_v(const PipelineOptions& options);

}  // namespace heddle::inline v0::schedule

#if HEDDLE_DEFINES_SCHEDULE_GENERATOR
#include <heddle/schedule/generator/dualpipe.ipp>
#endif
