// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// braid(): forwards and backwards in units that alternate. exchange_sums(): the sums over the
/// ranks that divide each layer, which hide behind the units of the other pass.

#include <heddle/core/linkage.hpp>
#include <heddle/schedule/order/orders.hpp>
#include <heddle/schedule/schedule.hpp>

namespace heddle::inline v0::schedule {

/// Returns `orders` with `units` stages for each stage, such as an attention and an MLP. Stage s
/// becomes the stages `units` s to `units` s + `units` - 1, which are on the same ranks. The two
/// passes of a fused pair alternate unit by unit: F0 B1 F1 B0 for two units. A unit of one pass
/// does not need the unit of the other pass before it, so the sums and messages of one pass have
/// the units of the other pass to hide behind. Fuse the orders before, see fuse().
///
/// Source of the order: Qi et al., "Synergistic tensor and pipeline parallelism" (2025), whose
/// braided blocks have an attention and an MLP each.
/// @throws contract_error if `units` is below 1, if the graph has edges at backward passes, or if
///         orders have updates, split backwards or shares.
[[nodiscard]] Orders braid(const Orders& orders, int units);

/// Returns `schedule` with a sum over `lines` ranks after each F that writes an output and after
/// each B that writes an input_grad, as the ranks of a layer that tensor parallelism divides need
/// it. The Schedule has the `lines` copies of each action one after the other, as data_parallel()
/// makes them of an axis of `shards`.
///
/// Each rank sends its part to the other ranks as soon as it has been computed, and adds their
/// parts after the next unit of its queue, or earlier if an action needs the sum. A message of the
/// sum to the next stage follows it. So a list that an executor runs in its order has the time of
/// one unit for each sum. For two ranks this is an all-reduce with the fewest bytes, and both ranks
/// get the same bits.
///
/// Let F and B be the times of a pass without sums, s the time of a sum, and each pass have two
/// units. On one stage, a step of M microbatches takes M (F + B + 2 s) without fused pairs. If
/// braided, it takes M (F + B) + 2 s as long as s is at most half of F and half of B.
/// @throws contract_error if `lines` is below 1, or if the copies are not there.
[[nodiscard]] Schedule exchange_sums(const Schedule& schedule, int lines);

}  // namespace heddle::inline v0::schedule

#if HEDDLE_DEFINES_SCHEDULE_PASS
#include <heddle/schedule/pass/braid.ipp>
#endif
