// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// LayerTimeSums: the times of the first layers of a model, from which those of any layers follow.

#include <cstddef>
#include <cstdint>
#include <vector>

#include <heddle/layout/layer_range.hpp>
#include <heddle/machine/device.hpp>
#include <heddle/plan/plan_problem.hpp>
#include <heddle/plan/profile.hpp>

namespace heddle::inline v0::plan::impl {

/// The sums of the times of the first l layers, for l from 0 to all, for one kind of device, one
/// tensor degree and one number of samples.
struct LayerTimeSums {
  std::vector<LayerTimes> first;

  [[nodiscard]] LayerTimes of(LayerRange range) const {
    const LayerTimes& to = first[static_cast<std::size_t>(range.last)];
    const LayerTimes& from = first[static_cast<std::size_t>(range.first)];
    return {to.forward - from.forward, to.backward_input - from.backward_input,
            to.backward_weight - from.backward_weight, to.update - from.update};
  }
  [[nodiscard]] const LayerTimes& all() const { return first.back(); }
};

/// Fills in the sums of a problem's layers, if they are empty.
inline void fill(LayerTimeSums& sums, const PlanProblem& problem, const Device& device, int tensor,
                 std::int64_t samples) {
  if (!sums.first.empty()) return;
  LayerTimes sum;
  sums.first.push_back(sum);
  for (int l = 0; l < problem.layers(); ++l) {
    sum += problem.profile().times(l, device, tensor, static_cast<double>(samples));
    sums.first.push_back(sum);
  }
}

}  // namespace heddle::inline v0::plan::impl
