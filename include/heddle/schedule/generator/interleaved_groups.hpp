// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// Interleaved 1F1B in groups of microbatches, without and with fused pairs (combined 1F1B), as
/// Orders and as a Schedule.

#include <heddle/core/linkage.hpp>
#include <heddle/schedule/order/orders.hpp>
#include <heddle/schedule/schedule.hpp>
#include <heddle/schedule/stage_storage.hpp>

namespace heddle::inline v0::schedule {

/// Options of a pipeline in which rank r holds the stages r, r + ranks, r + 2 ranks, ... and in
/// which each stage computes the microbatches of a group in a row.
struct GroupedOptions {
  int ranks = 1;            ///< number of ranks, each with several stages
  int stages_per_rank = 2;  ///< the same number on every rank
  int microbatches = 1;     ///< in a step
  int group = 0;            ///< microbatches of a group; 0 is one for each rank
  StageSizes sizes = {};    ///< sizes of what a stage keeps and sends
};

/// Returns the orders of interleaved 1F1B in groups of `group` microbatches, of which the last
/// group may be shorter (the `microbatch_group_size_per_vp_stage` of Megatron-LM). The stages of a
/// rank compute a whole group one after the other. A larger group leaves a message more time, and
/// keeps more activations. A `group` of 0 is one microbatch for each rank. If the groups are equal,
/// the orders are those of interleaved() in rounds of this length.
///
/// Let G be the group, and F and B the times of a rank's V stages together. If M >= P, the bubble
/// is (P - 1)(F + B) / V for every G. Rank r has min(M V, (V - 1) G + 2 (P - 1 - r) + 1) live
/// activations, each of one stage.
/// @throws infeasible if V > 1 and a group is shorter than P, except for a single group. The error
///         names the nearest valid group.
/// @throws contract_error if there is no stage or no microbatch, or if `group` is below 0.
[[nodiscard]] Orders grouped_interleaved(int ranks, int stages_per_rank, int microbatches,
                                         int group = 0);

/// Returns the orders of combined 1F1B (Megatron-LM, "overlap of expert-parallel communication"):
/// grouped_interleaved() with one more forward in the warm-up of every rank. The forward and the
/// backward of a steady pair therefore belong to different microbatches that do not wait for each
/// other, and they are fused. One half can compute while the other half communicates, for
/// example in the all-to-all of experts.
///
/// Let F, B and FB be the times of one stage, and FB that of a pair. If M V >= (V - 1) G + 2 P - 1,
/// a step takes ((V - 1) G + P)(F + B) + (M V - (V - 1) G - 1) FB, for FB from max(F, B) to F + B.
/// Rank r has min(M V, (V - 1) G + 2 (P - 1 - r) + 2) live activations, each of one stage.
/// @throws infeasible or contract_error as grouped_interleaved() does.
[[nodiscard]] Orders combined_1f1b(int ranks, int stages_per_rank, int microbatches, int group = 0);

/// Returns the Schedule that weave() makes of the Orders of grouped_interleaved().
[[nodiscard]] Schedule grouped_interleaved(const GroupedOptions& options);
/// Returns the Schedule that weave() makes of the Orders of combined_1f1b().
[[nodiscard]] Schedule combined_1f1b(const GroupedOptions& options);

}  // namespace heddle::inline v0::schedule

#if HEDDLE_DEFINES_SCHEDULE_GENERATOR
#include <heddle/schedule/generator/interleaved_groups.ipp>
#endif
