// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// GPipe, 1F1B and interleaved 1F1B. A generator returns Orders for numbers, `gpipe(4, 8)`, and a
/// Schedule for options, `gpipe({.ranks = 4, .microbatches = 8})`.
/// The file also has the naive order, which is their baseline, and forward-only streams.

#include <heddle/core/linkage.hpp>
#include <heddle/schedule/order/orders.hpp>
#include <heddle/schedule/schedule.hpp>
#include <heddle/schedule/stage_storage.hpp>

namespace heddle::inline v0::schedule {

/// Options of a pipeline. A rank holds one stage, or two where the generator folds the pipeline to
/// a V: then rank r has the stages r and 2 ranks - 1 - r.
struct PipelineOptions {
  int ranks = 1;          ///< number of ranks
  int microbatches = 1;   ///< in a step
  StageSizes sizes = {};  ///< sizes of what a stage keeps and sends
};

/// Options of a pipeline in which rank r holds the stages r, r + ranks, r + 2 ranks, ...
struct InterleavedOptions {
  int ranks = 1;            ///< number of ranks, each with several stages
  int stages_per_rank = 2;  ///< the same number on every rank
  int microbatches = 1;     ///< in a step; see interleaved() for the valid numbers
  StageSizes sizes = {};    ///< sizes of what a stage keeps and sends
};

/// Returns orders without any pipelining: one microbatch after the other goes down all stages and
/// back. They are the baseline of the other schedules. A step takes M P (F + B), and every rank has
/// 1 live activation.
/// @throws contract_error if there is no stage or no microbatch.
[[nodiscard]] Orders naive(int ranks, int microbatches);

/// Returns the orders of GPipe: all forwards, then all backwards in the same order of microbatches
/// (Huang et al., "GPipe", 2019). The bubble is (P - 1)(F + B), and every rank has M live
/// activations.
/// @throws contract_error if there is no stage or no microbatch.
[[nodiscard]] Orders gpipe(int ranks, int microbatches);

/// Returns the orders of 1F1B: forwards fill the pipeline, then one forward and one backward
/// alternate, then the remaining backwards follow (Narayanan et al., "PipeDream", SOSP'19; Fan et
/// al., "DAPPLE", PPoPP'21). The bubble is (P - 1)(F + B), and rank r has min(M, P - r) live
/// activations.
/// @throws contract_error if there is no stage or no microbatch.
[[nodiscard]] Orders one_f_one_b(int ranks, int microbatches);

/// Returns the orders of interleaved 1F1B (Narayanan et al., "Efficient large-scale language model
/// training on GPU clusters", SC'21, in the generalisation of torch.distributed.pipelining). The
/// microbatches run in rounds of R = M / max(1, M div P). In a round, the chunks (stages) of a rank
/// compute one after the other.
///
/// The bubble is (P - 1)(F + B) / V if M >= P, where F and B are the times of a rank's V chunks
/// together. Rank r has min(M V, (V - 1) R + 2 (P - 1 - r) + 1) live activations of chunks, and
/// each of them is 1/V of a rank's activation.
/// @throws infeasible if M is not a multiple of M div P; the error names the nearest valid M.
/// @throws contract_error if there is no stage or no microbatch.
[[nodiscard]] Orders interleaved(int ranks, int stages_per_rank, int microbatches);

/// Returns the Schedule that weave() makes of the Orders of gpipe().
[[nodiscard]] Schedule gpipe(const PipelineOptions& options);
/// Returns the Schedule that weave() makes of the Orders of one_f_one_b().
[[nodiscard]] Schedule one_f_one_b(const PipelineOptions& options);
/// Returns the Schedule that weave() makes of the Orders of interleaved().
[[nodiscard]] Schedule interleaved(const InterleavedOptions& options);

/// Returns orders with forward actions only: a stream of items goes through a chain of stages, one
/// stage per rank. It serves inference.
/// @throws contract_error if there is no stage or no item.
[[nodiscard]] Orders stream(int ranks, int items);
/// Returns the Schedule that weave() makes of the Orders of stream(). The items are
/// `options.microbatches`.
[[nodiscard]] Schedule stream(const PipelineOptions& options);

}  // namespace heddle::inline v0::schedule

#if HEDDLE_DEFINES_SCHEDULE_GENERATOR
#include <heddle/schedule/generator/pipeline.ipp>
#endif
