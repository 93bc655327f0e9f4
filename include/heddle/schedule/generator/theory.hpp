// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// Closed forms for what the generators promise, to lay beside a simulated or measured timeline.

#include <heddle/core/contract.hpp>
#include <heddle/core/text.hpp>

namespace heddle::inline v0::schedule {

/// Bubble ratio of GPipe and 1F1B (`stages_per_rank` 1) and of interleaved 1F1B (V stages per rank)
/// for P ranks and M microbatches: (P - 1) / (V M + P - 1), the idle share of the ranks' time.
///
/// A rank works M (F + B) per step, with F and B the times of its V stages together. It idles while
/// the first microbatch comes down the P - 1 other ranks and while the last one goes back up, each
/// time for one of its V stages: (P - 1)(F + B) / V. The ratio idle / (idle + work) does not depend
/// on F and B. Holds for equal stages, transfers that take no time, no update, and for V > 1 for
/// M >= P.
/// Source: Huang et al., "GPipe" (2019), section 2.3; Narayanan et al., "Efficient large-scale
/// language model training on GPU clusters" (SC'21), section 2.2, where the bubble is given
/// relative to the work.
[[nodiscard]] inline double bubble_ratio(int ranks, int microbatches, int stages_per_rank = 1) {
  expects(ranks >= 1 && microbatches >= 1 && stages_per_rank >= 1, [&] {
    return Complaint{"heddle::schedule::bubble_ratio", "every count is at least one",
                     text("ranks = ", ranks, ", microbatches = ", microbatches,
                          ", stages per rank = ", stages_per_rank)};
  });
  const double idle = ranks - 1.0;
  return idle / (static_cast<double>(stages_per_rank) * microbatches + idle);
}

}  // namespace heddle::inline v0::schedule
