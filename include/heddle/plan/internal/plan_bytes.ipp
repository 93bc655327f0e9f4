// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// Definitions of plan_bytes.hpp.

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <tuple>
#include <utility>
#include <vector>

#include <heddle/core/codec.hpp>
#include <heddle/core/index.hpp>
#include <heddle/core/linkage.hpp>
#include <heddle/core/units.hpp>
#include <heddle/machine/machine.hpp>
#include <heddle/plan/internal/kept_by_stage.hpp>
#include <heddle/plan/internal/plan_bytes.hpp>
#include <heddle/plan/internal/sites.hpp>
#include <heddle/plan/internal/stage_memory.hpp>
#include <heddle/plan/plan_problem.hpp>
#include <heddle/plan/profile.hpp>
#include <heddle/schedule/plan.hpp>

namespace heddle::inline v0::plan::impl {

/// Returns the bytes of the buffer through which a ring sums the gradients of a bucket. With a
/// sharding the ranks sum without a buffer of the schedule, but for zero1 in several buckets, which
/// shard_updates() divides.
[[nodiscard]] inline double sum_bytes(const Plan& plan, const PlanStage& stage,
                                      const PlanProblem& problem) {
  const std::size_t sharers = stage.ranks.size() / static_cast<std::size_t>(stage.tensor);
  if (!plan.sharding.empty()) {
    if (zero_stage(plan.sharding) != 1 || plan.bucket_count() == 1 || sharers == 1) return 0;
    const Bytes element = size_of(problem.options().activation),
                parts = static_cast<Bytes>(sharers);
    const Bytes gradients = problem.profile().parameters(stage.layers, stage.tensor);
    const Bytes block = (gradients / element + parts - 1) / parts;  // of every other rank
    return static_cast<double>((parts - 1) * block * element);
  }
  return ring_bytes(problem.profile().parameters(stage.layers, stage.tensor), sharers,
                    size_of(problem.options().activation));
}

/// Returns bytes rounded up.
[[nodiscard]] inline Bytes whole_bytes(double bytes) {
  return static_cast<Bytes>(std::ceil(std::min(bytes, 0x1p63)));
}

HEDDLE_INLINE const KeptByStage& PlanBytes::kept_of(const Plan& plan) {
  const std::tuple key(plan.schedule, plan.stages.size(), plan.microbatches);
  if (const auto known = m_kept.find(key); known != m_kept.end()) return known->second;
  KeptByStage kept = kept_by_schedule(plan.schedule, plan.stages.size(), plan.microbatches,
                                      "heddle::plan::simulated_step");
  return m_kept.emplace(key, std::move(kept)).first->second;
}

HEDDLE_INLINE std::vector<Bytes> PlanBytes::memory(const Plan& plan) {
  const PlanProblem& problem = *m_problem;
  heddle::check(plan, problem.layers(), problem.machine().ranks());
  const KeptByStage& by_stage = kept_of(plan);
  const Profile& profile = problem.profile();
  const bool casts = any_cast(plan.casts) || any_cast(problem.options().codecs);
  std::vector<Bytes> memory(static_cast<std::size_t>(problem.machine().ranks()));
  for (std::size_t s = 0; s < plan.stages.size(); ++s) {
    const PlanStage& stage = plan.stages[s];
    const KeptState state = state_of(plan, stage, problem.options().state_per_parameter);
    const auto weights = [&](LayerRange layers) {
      return static_cast<double>(profile.parameters(layers, stage.tensor));
    };
    SampleBytes each{
        .saved = static_cast<double>(profile.saved(stage.layers, stage.tensor)),
        .input = profile.input_of(stage.layers.first),
        .output = profile.layers[static_cast<std::size_t>(stage.layers.last) - 1].output};
    for (int l = stage.layers.first; l < stage.layers.last; ++l) {
      const Bytes bytes = profile.layers[static_cast<std::size_t>(l)].delta;
      each.delta += std::ceil(static_cast<double>(bytes) / stage.tensor);
    }
    const bool first = s == 0, last = s + 1 == plan.stages.size();
    const KeptMicrobatches most = by_stage.at(s);
    double kept = kept_bytes(each, most, message_slots(most, plan.microbatches, first, last, casts),
                             stage.tensor, first, stage.recompute);
    double sum = 0, largest = 0;
    for (const PlanStage& bucket :
         schedule::in_buckets({.stages = {stage}, .buckets = plan.bucket_count()}).stages) {
      sum += sum_bytes(plan, bucket, problem);
      largest = std::max(largest, weights(bucket.layers));
      // The next bucket reads this one's output until its backward, and returns its gradient.
      if (bucket.layers.last < stage.layers.last)
        kept += static_cast<double>(most.live + most.split + 1) *
                static_cast<double>(profile.input_of(bucket.layers.last)) / stage.tensor;
    }
    const double whole = state.own * weights(stage.layers) + state.room * largest + sum;
    const std::size_t degree = stage.ranks.size() / stage.groups();
    for (std::size_t i = 0; i < stage.ranks.size(); ++i) {
      const double samples = static_cast<double>(stage.samples[i / degree]) / stage.sequence;
      memory[+stage.ranks[i]] = whole_bytes(whole + kept * samples);
    }
  }
  return memory;
}

HEDDLE_INLINE std::optional<MemoryShortage> PlanBytes::shortage(const Plan& plan) {
  const std::vector<Bytes> needed = memory(plan);
  std::optional<MemoryShortage> worst;
  for (std::size_t r = 0; r < needed.size(); ++r) {
    const Bytes capacity = capacity_of(m_problem->machine().device(Rank{r}));
    if (capacity == 0 || needed[r] <= capacity) continue;
    if (!worst || needed[r] - capacity > worst->needed - worst->capacity)
      worst = MemoryShortage{Rank{r}, needed[r], capacity};
  }
  return worst;
}

}  // namespace heddle::inline v0::plan::impl
