// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// Definitions of theory.hpp.

#include <cmath>
#include <optional>

#include <heddle/core/contract.hpp>
#include <heddle/core/linkage.hpp>
#include <heddle/core/text.hpp>
#include <heddle/schedule/generator/catalogue.hpp>
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

HEDDLE_INLINE std::optional<double> bubble_ratio(const NamedSchedule& schedule,
                                                 const PipelineShape& shape, double forward,
                                                 double backward_input, double backward_weight) {
  expects(
      shape.ranks >= 1 && shape.microbatches >= 1 && shape.stages_per_rank >= 1 && shape.pairs >= 1,
      [&] {
        return ErrorInfo{
            "heddle::schedule::bubble_ratio", "every count must be at least 1",
            text("ranks = ", shape.ranks, ", microbatches = ", shape.microbatches,
                 ", stages per rank = ", shape.stages_per_rank, ", pairs = ", shape.pairs)};
      });
  for (const double time : {forward, backward_input, backward_weight})
    expects(time >= 0 && std::isfinite(time), [&] {
      return ErrorInfo{"heddle::schedule::bubble_ratio", "a time must be finite and at least 0",
                       text("forward = ", forward, ", backward_input = ", backward_input,
                            ", backward_weight = ", backward_weight)};
    });
  if (schedule.bubble == nullptr) return {};
  return schedule.bubble(shape, forward, backward_input, backward_weight);
}

}  // namespace heddle::inline v0::schedule
