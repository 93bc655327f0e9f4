// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// 1F1B with vocabulary parallelism: the output layer of a language model is divided over all ranks
/// of the pipeline. As Orders and as a Schedule.

#include <heddle/core/linkage.hpp>
#include <heddle/schedule/generator/pipeline.hpp>
#include <heddle/schedule/order/orders.hpp>
#include <heddle/schedule/schedule.hpp>

namespace heddle::inline v0::schedule {

/// Returns the orders of 1F1B with vocabulary parallelism (Yeung et al., "Balancing pipeline
/// parallelism with vocabulary parallelism", 2024; their first algorithm, with two exchanges). The
/// output layer has as many columns as the vocabulary. It would make the last rank the slowest one,
/// so each of the P ranks computes a share of it.
///
/// The graph has 2P stages. Stages 0 to P - 1 are the chain, one on each rank. Stage P + r is the
/// share of rank r of the output layer. Its forward is the pass S: it takes the output of stage P -
/// 1 and computes its logits and their maximum and sum. Its backward is the pass T: it takes the
/// maxima and sums of all shares (edges at the backward pass), and computes its part of the
/// gradient of stage P - 1 and the gradients of its weights. Stage P - 1 adds the P parts in its
/// backward.
///
/// An exchange has the time of other passes to hide in: on every rank, an F and a B run between the
/// S and the T of a microbatch. Rank r has min(M, P + 2 - r) live activations of its stage in the
/// chain, 2 more than in 1F1B. If B = 2F, no rank is idle between the ends of the pipeline: for
/// F = S = T = 1, a step of M >= 2P microbatches on P >= 3 ranks takes 5 M + 3 P.
/// @throws contract_error if there is no stage or no microbatch.
[[nodiscard]] Orders vocabulary_parallel(int ranks, int microbatches);

/// Returns the Schedule that weave() makes of the Orders of vocabulary_parallel(). The sizes are
/// those of all stages; Schedule::with_sizes() sets other ones for the shares of the output layer.
[[nodiscard]] Schedule vocabulary_parallel(const PipelineOptions& options);

}  // namespace heddle::inline v0::schedule

#if HEDDLE_DEFINES_SCHEDULE_GENERATOR
#include <heddle/schedule/generator/vocabulary_parallel.ipp>
#endif
