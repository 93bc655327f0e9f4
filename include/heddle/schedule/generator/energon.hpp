// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// EnergonAI's pipeline for inference: stages that hand on what they made and go on, or that wait
/// until it is sent.

#include <heddle/core/contract.hpp>
#include <heddle/core/text.hpp>
#include <heddle/schedule/fold.hpp>
#include <heddle/schedule/generator/pipeline.hpp>

namespace heddle::inline v0::schedule {

/// Of energon().
struct EnergonOptions {
  int stages = 1;         ///< and ranks
  int requests = 1;       ///< batches to infer, in the order in which they came
  int depth = 1;          ///< results that a stage may leave to be sent while it goes on
  StageSizes sizes = {};  ///< of what is sent
};

/// stream() with `depth` + 1 places for the results of a stage (Du et al., "EnergonAI", 2022, whose
/// queues have depth 1). With none to spare, depth 0, a stage waits until its result is sent before
/// it begins the next: a blocking send. Nothing else tells the two apart.
///
/// With t for a stage and an occupancy of c for a transfer, M requests through S > 1 stages take
/// S t + (S - 1) c + (M - 1) max(t, c) for depth >= 1, and S t + (S - 1) c + (M - 1)(t + c) for
/// depth 0.
///
/// A Runner folds again, to RunOptions::slack + 1 places where there are more: give it the depth as
/// slack where that is above 1.
/// @throws contract_error for a depth below 0.
[[nodiscard]] inline Schedule energon(const EnergonOptions& options) {
  expects(options.depth >= 0, [&] {
    return Complaint{"heddle::schedule::energon", "a depth is a number of results",
                     text("depth = ", options.depth), "0 is a blocking send"};
  });
  Orders orders = stream_orders(options.stages, options.requests);
  orders.name =
      text("EnergonAI P=", options.stages, " M=", options.requests, " depth=", options.depth);
  return fold_to_live(weave(orders, options.sizes), static_cast<std::uint32_t>(options.depth));
}

}  // namespace heddle::inline v0::schedule
