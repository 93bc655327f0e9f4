// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// 1F1B-V: 1F1B on a pipeline folded to a V, with whole backwards and two thirds of the memory of
/// 1F1B. As Orders and as a Schedule.

#include <heddle/core/linkage.hpp>
#include <heddle/schedule/generator/pipeline.hpp>
#include <heddle/schedule/order/orders.hpp>
#include <heddle/schedule/schedule.hpp>

namespace heddle::inline v0::schedule {

/// Returns the orders of 1F1B-V (Qi et al., "Pipeline parallelism with controllable memory",
/// NeurIPS'24). Rank r holds the stages r and 2P - 1 - r. Every rank has at most
/// 2 (floor(2P / 3) + 1) live activations of stages, and 1F1B keeps those of 2P stages. The
/// backward is not split. The bubble is between those of 1F1B and V-half: for P = 8, M = 16 and B =
/// 2F, a step takes 129 F with 12 live activations.
///
/// The passage of the microbatches repeats as published. Then each action moves to the earliest gap
/// of its rank that keeps the passage's memory.
/// @throws contract_error if there is no rank or no microbatch.
[[nodiscard]] Orders one_f_one_b_v(int ranks, int microbatches);

/// Returns the Schedule that weave() makes of the Orders of one_f_one_b_v().
[[nodiscard]] Schedule one_f_one_b_v(const PipelineOptions& options);

}  // namespace heddle::inline v0::schedule

#if HEDDLE_DEFINES_SCHEDULE_GENERATOR
#include <heddle/schedule/generator/one_f_one_b_v.ipp>
#endif
