// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// The time of the sums of gradients of a stage, for the prices of a plan and for the costs of its
/// schedule.

#include <algorithm>
#include <cstddef>
#include <vector>

#include <heddle/core/index.hpp>
#include <heddle/core/units.hpp>
#include <heddle/machine/machine.hpp>
#include <heddle/plan/plan_problem.hpp>
#include <heddle/plan/profile.hpp>
#include <heddle/schedule/plan.hpp>

namespace heddle::inline v0::plan::impl {

/// Returns the longest of the rings over the ranks that hold the same part of a stage's weights.
[[nodiscard]] inline Seconds gradient_sum_time(const PlanStage& stage, const Profile& profile,
                                               const Machine& machine) {
  const auto bytes = static_cast<double>(profile.parameters(stage.layers, stage.tensor));
  Seconds longest = 0;
  std::vector<Rank> ring;
  for (std::size_t t = 0; t < static_cast<std::size_t>(stage.tensor); ++t) {
    ring.clear();
    for (std::size_t i = t; i < stage.ranks.size(); i += static_cast<std::size_t>(stage.tensor))
      ring.push_back(stage.ranks[i]);
    longest = std::max(longest, ring_all_reduce_time(machine, ring, bytes));
  }
  return longest;
}

}  // namespace heddle::inline v0::plan::impl
