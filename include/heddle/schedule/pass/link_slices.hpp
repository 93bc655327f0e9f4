// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// link_slices(): the dependencies between the slices of a sequence, when each slice is a
/// microbatch.

#include <heddle/core/linkage.hpp>
#include <heddle/schedule/schedule.hpp>

namespace heddle::inline v0::schedule {

/// Returns `schedule` with the dependencies of causal attention between the slices of a sequence.
/// Microbatch `m` is slice `m` % `slices` of sequence `m` / `slices`, as in seq_1f1b(). Use it
/// directly after weave().
///
/// - An F, I or B reads the saved values of the earlier slices of its sequence, because they
///   contain the keys and values that its queries attend to. These uses stand behind the other
///   uses, so that the first use of Role::saved is still the own one.
/// - The gradients of the keys and values of a slice are a sum over the later slices. A buffer of
///   Role::slice_grads without bytes stands for it, with a part for each slot of the saved values.
///   The backward pass of the last slice begins the sums of its sequence, those of the other slices
///   continue them, and that of a slice reads its own sum. A stage has the memory of the sums of
///   one sequence, so it must end the backward passes of a sequence before it begins those of
///   another one.
///
/// The saved values get slots: a forward takes the first free slot of its stage, and the last use
/// of its value frees the slot. So a rank with min(M, P - 1 - r + `slices`) live slices has as many
/// slots, although the backward passes of a sequence are not in the order of its forwards. fold()
/// alone would need more slots.
///
/// fold() keeps the saved values of a slice as long as another slice needs them, and an order
/// that computes slices too early is rejected.
///
/// Source of the order: Sun et al., "Seq1F1B" (2024), sections 3.2 and 3.3.
/// @throws infeasible if the microbatches are not a multiple of `slices`, if a forward precedes
///         that of an earlier slice, if a backward precedes that of a later slice, if a stage has
///         begun the backwards of another sequence and not ended them, if the slices of a sequence
///         are on several ranks, or if ranks divide the samples of a stage; it names the action or
///         the stage.
/// @throws contract_error if `slices` is below 1.
[[nodiscard]] Schedule link_slices(const Schedule& schedule, int slices);

}  // namespace heddle::inline v0::schedule

#if HEDDLE_DEFINES_SCHEDULE_PASS
#include <heddle/schedule/pass/link_slices.ipp>
#endif
