// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// GIS: interleaved 1F1B in small groups with a split backward, for about half the memory. As
/// Orders and as a Schedule.

#include <heddle/core/linkage.hpp>
#include <heddle/schedule/generator/pipeline.hpp>
#include <heddle/schedule/order/orders.hpp>
#include <heddle/schedule/schedule.hpp>

namespace heddle::inline v0::schedule {

/// Returns the orders of GIS, the generalised interleaved schedule of Wan et al. ("PipeOffload",
/// 2025): interleaved 1F1B in groups of G = ceil(P / 2) microbatches, with half the warm-up per
/// rank. It needs a split backward. W follows its I at once, and the next rank waits only for I.
///
/// Rank r has min(M V, (V - 1) G + P - r) live activations, each of one stage. This is about half
/// the memory of interleaved 1F1B for many stages per rank. If P is even, G divides M, M >= P and
/// F = I = W = 1 per stage, the bubble is 2 (P - 1) + (V - 1) P / 2.
/// @throws contract_error if there is no stage or no microbatch.
[[nodiscard]] Orders gis(int ranks, int stages_per_rank, int microbatches);

/// Returns the Schedule that weave() makes of the Orders of gis().
[[nodiscard]] Schedule gis(const InterleavedOptions& options);

}  // namespace heddle::inline v0::schedule

#if HEDDLE_DEFINES_SCHEDULE_GENERATOR
#include <heddle/schedule/generator/gis.ipp>
#endif
