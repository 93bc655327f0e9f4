// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// The pivot stage and the latency of DAPPLE's planner, for stages that need no checks.

#include <algorithm>
#include <cstddef>
#include <span>

#include <heddle/core/contract.hpp>
#include <heddle/core/text.hpp>
#include <heddle/core/units.hpp>
#include <heddle/schedule/internal/is_time.hpp>
#include <heddle/systems/dapple/dapple.hpp>

namespace heddle::inline v0::systems::impl {

/// Returns pivot_stage() of stages that need no checks.
inline std::size_t pivot_of(std::span<const LatencyStage> stages, int microbatches) {
  std::size_t pivot = stages.size() - 1;
  const auto both = [&](std::size_t s) { return stages[s].forward + stages[s].backward; };
  Seconds between = 0;
  for (std::size_t s = pivot; s-- > 0;) {
    if ((microbatches - 1) * both(s) > (microbatches - 1) * both(pivot) + between) {
      pivot = s;
      between = 0;
    } else {
      between += both(s);
    }
  }
  return pivot;
}

/// Returns pivot_latency() of stages that need no checks.
inline Seconds latency_of(std::span<const LatencyStage> stages, int microbatches) {
  const std::size_t pivot = pivot_of(stages, microbatches);
  Seconds warm_up = 0;
  for (std::size_t s = 0; s <= pivot; ++s) warm_up += stages[s].forward;
  Seconds ending = 0;
  Seconds backwards = 0;
  for (std::size_t s = pivot + 1; s-- > 0;) {
    backwards += stages[s].backward;
    ending = std::max(ending, stages[s].tail + backwards);
  }
  backwards = stages[pivot].backward;
  for (std::size_t s = pivot + 1; s < stages.size(); ++s) {
    backwards += stages[s].backward;
    ending = std::max(ending, stages[s].tail - backwards);
  }
  return warm_up + (microbatches - 1) * (stages[pivot].forward + stages[pivot].backward) + ending;
}

/// Checks the times and the number of microbatches.
inline void check_latency(const char* where, std::span<const LatencyStage> stages,
                          int microbatches) {
  expects(!stages.empty(), [&] {
    return ErrorInfo{where, "a pipeline needs at least one stage", "there are no stages"};
  });
  expects(microbatches >= 1, [&] {
    return ErrorInfo{where, "a step needs at least one microbatch",
                     text("microbatches = ", microbatches)};
  });
  for (std::size_t s = 0; s < stages.size(); ++s)
    expects(heddle::impl::is_time(stages[s].forward) && heddle::impl::is_time(stages[s].backward) &&
                heddle::impl::is_time(stages[s].tail),
            [&] {
              return ErrorInfo{
                  where, "a time is negative, infinite or not a number",
                  text("stages[", s, "]: forward = ", stages[s].forward,
                       ", backward = ", stages[s].backward, ", tail = ", stages[s].tail)};
            });
}

}  // namespace heddle::inline v0::systems::impl
