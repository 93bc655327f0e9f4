// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// Definitions of theory.hpp.

#include <heddle/core/contract.hpp>
#include <heddle/core/linkage.hpp>
#include <heddle/core/text.hpp>
#include <heddle/schedule/generator/theory.hpp>

namespace heddle::inline v0::schedule {

HEDDLE_INLINE double bubble_ratio(int ranks, int microbatches, int stages_per_rank) {
  expects(ranks >= 1 && microbatches >= 1 && stages_per_rank >= 1, [&] {
    return ErrorInfo{"heddle::schedule::bubble_ratio", "every count must be at least 1",
                     text("ranks = ", ranks, ", microbatches = ", microbatches,
                          ", stages per rank = ", stages_per_rank)};
  });
  const double idle = ranks - 1.0;
  return idle / (static_cast<double>(stages_per_rank) * microbatches + idle);
}

}  // namespace heddle::inline v0::schedule
