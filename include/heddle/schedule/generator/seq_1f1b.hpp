// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// Seq1F1B: 1F1B over slices of sequences, for sequences whose activations do not fit otherwise. As
/// Orders and as a Schedule.

#include <heddle/core/linkage.hpp>
#include <heddle/schedule/order/orders.hpp>
#include <heddle/schedule/schedule.hpp>
#include <heddle/schedule/stage_storage.hpp>

namespace heddle::inline v0::schedule {

/// Options of a pipeline with one stage per rank whose microbatches are slices of sequences.
struct Seq1f1bOptions {
  int ranks = 1;          ///< number of ranks, each with one stage
  int microbatches = 1;   ///< the slices of all sequences of a step, a multiple of `slices`
  int slices = 2;         ///< slices of a sequence; 1 is 1F1B
  StageSizes sizes = {};  ///< sizes of what a stage keeps and sends, for a slice
};

/// Returns the orders of Seq1F1B (Sun et al., "Seq1F1B", 2024). A microbatch is a slice of a
/// sequence: microbatch `m` is slice `m` % `slices` of sequence `m` / `slices`. The forwards of a
/// sequence run from its first slice to its last one, because causal attention reads the keys and
/// values of the slices before. The backwards run from the last slice to the first one, because the
/// gradients of these keys and values are sums over the slices behind. A rank has all slices of a
/// sequence, so no message is needed for them. The activations of a slice, and with them its keys
/// and values, live until its own backward, which is the last one that needs them.
///
/// If all slices take the same time, a step takes (M + P - 1)(F + B), where M, F and B are those of
/// slices. Rank r has min(M, P - 1 - r + `slices`) live activations of slices. For P = 4 and 4
/// sequences of 4 slices, these are 7 instead of the 16 slices of 1F1B. Later slices of causal
/// attention take longer: pass costs to simulate() that depend on the microbatch.
///
/// @throws infeasible if M is not a multiple of `slices`; the error names the nearest valid M.
/// @throws contract_error if there is no stage or no microbatch, or if `slices` is below 1.
[[nodiscard]] Orders seq_1f1b(int ranks, int microbatches, int slices);

/// Returns the Schedule that weave() makes of the Orders of seq_1f1b().
[[nodiscard]] Schedule seq_1f1b(const Seq1f1bOptions& options);

}  // namespace heddle::inline v0::schedule

#if HEDDLE_DEFINES_SCHEDULE_GENERATOR
#include <heddle/schedule/generator/seq_1f1b.ipp>
#endif
