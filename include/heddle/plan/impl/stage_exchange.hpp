// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// The times of what the ranks of one stage exchange: gradients, weights and keys. They are parts
/// of the prices of a plan and of the costs of its schedule.

#include <algorithm>
#include <cstddef>
#include <vector>

#include <heddle/core/index.hpp>
#include <heddle/core/units.hpp>
#include <heddle/machine/machine.hpp>
#include <heddle/plan/impl/stage_memory.hpp>
#include <heddle/plan/plan_problem.hpp>
#include <heddle/plan/profile.hpp>
#include <heddle/schedule/plan.hpp>

namespace heddle::inline v0::plan::impl {

/// The times of the exchange of gradients and weights between the ranks of a stage that hold the
/// same part of its weights.
struct WeightExchange {
  Seconds gather = 0;   ///< the weights, before each forward and backward
  Seconds scatter = 0;  ///< the gradients, behind each backward
  Seconds step = 0;     ///< once a step, before or behind the update
  double update = 1;    ///< the part of the update that a rank performs
};

/// Returns the times by the sharding of a plan. A reduce-scatter and an all-gather each take half
/// of ring_all_reduce_time(), which is both. The longest of the rings of a stage counts.
[[nodiscard]] inline WeightExchange weight_exchange(const Plan& plan, const PlanStage& stage,
                                                    const Profile& profile,
                                                    const Machine& machine) {
  const auto bytes = static_cast<double>(profile.parameters(stage.layers, stage.tensor));
  const auto tensor = static_cast<std::size_t>(stage.tensor);
  Seconds longest = 0;
  std::vector<Rank> ring;
  for (std::size_t t = 0; t < tensor; ++t) {
    ring.clear();
    for (std::size_t i = t; i < stage.ranks.size(); i += tensor) ring.push_back(stage.ranks[i]);
    longest = std::max(longest, ring_all_reduce_time(machine, ring, bytes));
  }
  WeightExchange times;
  switch (zero_stage(plan.sharding)) {
    case 0: return {.step = longest};
    case 1: times = {.step = longest}; break;
    case 2: times = {.scatter = longest / 2, .step = longest / 2}; break;
    default: times = {.gather = longest / 2, .scatter = longest / 2}; break;
  }
  times.update = 1 / static_cast<double>(ring.size());
  return times;
}

/// Returns the time in which the ranks of group `group` exchange the keys and values of one forward
/// of all layers of the stage: a ring in which each rank sends every block but one. A backward
/// takes twice as long, because the gradients of keys and values follow them.
[[nodiscard]] inline Seconds key_exchange(const PlanStage& stage, std::size_t group,
                                          const Profile& profile, const Machine& machine) {
  if (stage.sequence < 2) return 0;
  const auto tensor = static_cast<std::size_t>(stage.tensor);
  const auto parts = static_cast<std::size_t>(stage.sequence);
  Seconds longest = 0;
  std::vector<Rank> ring(parts);
  for (std::size_t t = 0; t < tensor; ++t) {
    for (std::size_t p = 0; p < parts; ++p) ring[p] = stage.ranks[(group * parts + p) * tensor + t];
    Seconds sum = 0;
    for (int l = stage.layers.first; l < stage.layers.last; ++l) {
      const Bytes keys = profile.layers[static_cast<std::size_t>(l)].keys;
      if (keys == 0) continue;
      // Half of an all-reduce is P - 1 messages of 1/P of the bytes.
      sum += ring_all_reduce_time(machine, ring,
                                  static_cast<double>(keys) *
                                      static_cast<double>(stage.samples[group]) / stage.tensor) /
             2;
    }
    longest = std::max(longest, sum);
  }
  return longest;
}

/// Adds to the times of a rank what it exchanges with other ranks of its stage.
inline void add_exchange(LayerTimes& times, const WeightExchange& weights, Seconds keys) {
  times.forward += weights.gather + keys;
  times.backward_input += weights.gather + 2 * keys;
  times.backward_weight += weights.scatter;
  times.update *= weights.update;
}

}  // namespace heddle::inline v0::plan::impl
