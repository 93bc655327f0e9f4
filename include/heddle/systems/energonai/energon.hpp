// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// EnergonAI's pipeline for inference. A stage either continues while its result is sent, or waits
/// until the result is sent.

#include <heddle/core/linkage.hpp>
#include <heddle/schedule/schedule.hpp>
#include <heddle/schedule/stage_storage.hpp>

namespace heddle::inline v0::systems {

/// Options of energon().
struct EnergonOptions {
  int ranks = 1;          ///< number of ranks, each with one stage
  int requests = 1;       ///< batches to infer, in the order of their arrival
  int depth = 1;          ///< results in flight while their stage continues; 0: blocking sends
  StageSizes sizes = {};  ///< sizes of what a stage sends
};

/// Returns the Schedule of stream() with `depth` + 1 slots for the results of a stage (Du et al.,
/// "EnergonAI", 2022, whose queues have depth 1). If `depth` is 0, a stage waits until its result
/// is sent before it begins the next one. This is a blocking send. Blocking and non-blocking
/// pipelines differ in nothing else.
///
/// Let t be the time of a stage and c the occupancy of a transfer. M requests through S > 1 stages
/// take S t + (S - 1) c + (M - 1) max(t, c) if depth >= 1, and S t + (S - 1) c + (M - 1)(t + c) if
/// depth = 0.
///
/// A Runner folds the Schedule again, to at most RunOptions::slack + 1 slots. If `depth` is above
/// 1, set the slack to `depth`.
/// @throws contract_error if `depth` is below 0, or if there is no stage or no request.
[[nodiscard]] Schedule energon(const EnergonOptions& options);

}  // namespace heddle::inline v0::systems

#if HEDDLE_DEFINES_SYSTEMS
#include <heddle/systems/energonai/energon.ipp>
#endif
