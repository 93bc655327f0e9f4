// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// Reads from a Plan the layers of each stage and the samples of a rank, for Stages.
/// Errors depend on the plan and the schedule only, so all ranks throw alike.

#include <cstddef>
#include <cstdint>
#include <vector>

#include <heddle/core/contract.hpp>
#include <heddle/core/index.hpp>
#include <heddle/core/text.hpp>
#include <heddle/pipeline/impl/sample_ranges.hpp>
#include <heddle/schedule/order/stage_shares.hpp>
#include <heddle/schedule/plan.hpp>
#include <heddle/schedule/schedule.hpp>

namespace heddle::inline v0::impl {

/// Returns the number of layers of each stage of the plan's Schedule. @throws contract_error if the
/// plan is for a model of another number of layers than `layers`.
[[nodiscard]] inline std::vector<int> layers_of(const Plan& plan, int layers) {
  std::vector<int> result;
  for (const PlanStage& stage : schedule::in_buckets(plan).stages)
    result.push_back(stage.layers.size());
  expects(plan.stages.back().layers.last == layers, [&] {
    return ErrorInfo{
        "heddle::Stages", "the plan is for another model",
        text("it divides ", plan.stages.back().layers.last, " layers, the model has ", layers),
        "plan with the profile of this model"};
  });
  return result;
}

/// Returns the samples of a microbatch that `rank` has between the layers: a part of its group's
/// samples if the group divides layers. The range is empty if the plan leaves the rank out.
/// @throws contract_error if a rank has other samples in the schedule than in the plan.
[[nodiscard]] inline SampleRange planned_samples(const Plan& plan, Rank rank,
                                                 const Schedule& schedule,
                                                 const SampleRanges& ranges) {
  SampleRange own;
  const std::vector<PlanStage> stages = schedule::in_buckets(plan).stages;
  for (std::size_t s = 0; s < stages.size(); ++s) {
    const PlanStage& stage = stages[s];
    std::int64_t begin = 0;  // of the group
    for (std::size_t i = 0; i < stage.ranks.size(); ++i) {
      const auto degree = static_cast<std::size_t>(stage.tensor * stage.sequence);
      const std::int64_t samples = stage.samples[i / degree];
      const std::int64_t planned = samples / stage.tensor;
      const std::int64_t scheduled = ranges.of(stage.ranks[i], Stage{s}).size();
      expects(scheduled == planned || scheduled == 0, [&] {
        return ErrorInfo{
            "heddle::Stages", "the schedule is not that of the plan",
            text("rank ", stage.ranks[i], " computes ", scheduled, " samples of stage ", s, " in '",
                 schedule.name(), "', and ", planned, " in the plan"),
            "run plan::schedule() of the plan of the PlannedMesh, or of begin_plan()"};
      });
      if (stage.ranks[i] == rank) {
        const std::int64_t part = static_cast<std::int64_t>(i) % stage.tensor;
        own = {begin + part * planned, begin + (part + 1) * planned};
      }
      if (i % degree == degree - 1) begin += samples;
    }
  }
  return own;
}

}  // namespace heddle::inline v0::impl
