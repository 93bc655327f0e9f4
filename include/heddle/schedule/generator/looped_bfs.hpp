// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// Looped breadth-first: several stages on every rank, each of which computes all microbatches
/// before the next stage begins. As Orders and as a Schedule.

#include <heddle/core/linkage.hpp>
#include <heddle/schedule/generator/pipeline.hpp>
#include <heddle/schedule/order/orders.hpp>
#include <heddle/schedule/schedule.hpp>

namespace heddle::inline v0::schedule {

/// Returns the orders of breadth-first pipeline parallelism (Lamy-Poirier, "Breadth-First Pipeline
/// Parallelism", MLSys'23). All microbatches go through a rank's first stage, then through its
/// second stage, and so on. The backwards follow, with the stages and the microbatches in reverse.
///
/// Let F and B be the times of the V stages of a rank together. A step takes
/// (V max(M, P) + min(M, P) - 1)(F + B) / V, which is the bubble of interleaved 1F1B if M >= P. A
/// rank sends its messages in runs of M for one stage, but it has V M live activations, each of
/// one stage.
/// @throws contract_error if there is no stage or no microbatch.
[[nodiscard]] Orders looped_bfs(int ranks, int stages_per_rank, int microbatches);

/// Returns the Schedule that weave() makes of the Orders of looped_bfs().
[[nodiscard]] Schedule looped_bfs(const InterleavedOptions& options);

}  // namespace heddle::inline v0::schedule

#if HEDDLE_DEFINES_SCHEDULE_GENERATOR
#include <heddle/schedule/generator/looped_bfs.ipp>
#endif
