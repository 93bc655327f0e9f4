// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// Chimera: pipelines in opposite directions over the same ranks, each with a copy of the model's
/// stages. One pipeline works in the bubbles of the other. As Orders and as a Schedule.

#include <heddle/core/linkage.hpp>
#include <heddle/schedule/order/orders.hpp>
#include <heddle/schedule/schedule.hpp>
#include <heddle/schedule/stage_storage.hpp>

namespace heddle::inline v0::schedule {

/// Options of chimera().
struct ChimeraOptions {
  int ranks = 2;                 ///< D: the number of ranks, and of stages, which must be even
  int microbatches = 1;          ///< in a step, over all pipelines
  int pairs = 1;                 ///< f: pipelines in each direction; the model has 2f copies
  bool double_forwards = false;  ///< compute the forwards of two microbatches in a row
  StageSizes sizes = {};         ///< sizes of what a stage keeps and sends
};

/// Returns the orders of 2f pipelines over D ranks (Li and Hoefler, "Chimera", SC'21). In the f
/// pipelines that go down, stage s is on rank s + k D/f. In the f pipelines that go up, stage s is
/// on rank D - 1 - s + k D/f. Both are modulo D. The first half of the microbatches goes down and
/// the second half goes up, divided as evenly as possible.
///
/// Every rank computes in the order of slots. A unit of D microbatches takes 2D slots. The n-th
/// microbatch of a pipeline in its unit has its forward on stage s in slot 2n + s and its backward
/// in slot 2n + 2D - 1 - s. No two computations of a rank share a slot, not even when one unit
/// follows another. For u whole units, the bubble is (D/f - 2)(max(F, B) + (u - 1)|F - B|). For
/// f = 1 and whole units there are between D/2 + 1 and D live activations.
///
/// With `double_forwards` a forward slot takes two microbatches. Their backwards take the backward
/// slot and the one before it, so all slots are equally long if B = 2F. For f = 1, whole units of
/// 2D microbatches and F <= B <= 2F, the bubble is (D/2 - 1)(F + B), with twice the live
/// activations. Backward halving is the same order with twice as many microbatches of half the
/// size.
///
/// @throws infeasible if the number of stages is odd or not a multiple of 2 `pairs`.
/// @throws contract_error if there is no stage, no microbatch or no pair.
[[nodiscard]] Orders chimera(int ranks, int microbatches, int pairs = 1,
                             bool double_forwards = false);

/// Returns the Schedule that weave() makes of the Orders of chimera().
[[nodiscard]] Schedule chimera(const ChimeraOptions& options);

}  // namespace heddle::inline v0::schedule

#if HEDDLE_DEFINES_SCHEDULE_GENERATOR
#include <heddle/schedule/generator/chimera.ipp>
#endif
