// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// Definitions of stage_placement.hpp.

#include <algorithm>
#include <cstddef>
#include <memory>
#include <optional>
#include <string_view>
#include <utility>
#include <vector>

#include <mpi.h>

#include <heddle/core/contract.hpp>
#include <heddle/core/error.hpp>
#include <heddle/core/internal/enumerator.hpp>
#include <heddle/core/linkage.hpp>
#include <heddle/core/text.hpp>
#include <heddle/execute/exchange.hpp>
#include <heddle/pipeline/impl/plan_places.hpp>
#include <heddle/pipeline/impl/sample_ranges.hpp>
#include <heddle/pipeline/impl/stage_placement.hpp>
#include <heddle/pipeline/impl/stage_sizes.hpp>
#include <heddle/pipeline/impl/tied_stages.hpp>
#include <heddle/pipeline/partition.hpp>
#include <heddle/schedule/collective/form.hpp>
#include <heddle/schedule/pass/data_parallel.hpp>
#include <heddle/schedule/pass/expand.hpp>
#include <heddle/schedule/pass/gradient_sum.hpp>
#include <heddle/schedule/pass/shard_updates.hpp>
#include <heddle/schedule/pass/tie_parameters.hpp>
#include <heddle/schedule/stage_storage.hpp>

namespace heddle::inline v0::impl {

/// Throws if the stages cannot run `schedule`. The result is the same on all ranks.
inline void check_stages(const Schedule& schedule, GradientSum sum, const StageTraits& traits,
                         bool planned) {
  for (const Action& action : schedule.actions())
    if (action.kind == Kind::group && sum == GradientSum::library && !planned)
      throw infeasible({"heddle::Stages",
                        "GradientSum::library cannot sum gradients of replicas within the pipeline",
                        text("'", schedule.name(), "' has replicas of stages within the pipeline"),
                        "use GradientSum::ring"});
  expects(traits.updates_parts || sum != GradientSum::sharded, [] {
    return ErrorInfo{"heddle::Stages", "the stages cannot update a part of their parameters",
                     "StagesOptions::gradient_sum is GradientSum::sharded",
                     "add the member update(first, count) to the stage, or use GradientSum::ring"};
  });
  if (traits.uses_parameters) return;
  for (const Buffer& buffer : schedule.buffers())
    expects(buffer.parts == 1 || schedule[buffer.label] != role::weights, [&] {
      return ErrorInfo{
          "heddle::Stages", "the stages keep one version of their parameters",
          text("'", schedule.name(), "' needs ", buffer.parts, " of stage ", buffer.stage),
          "add the member use_parameters(pointer) to the stage; see PipelineStage"};
    });
}

/// Throws contract_error unless `counts` is empty or divides the layers of a model among stages.
inline void expect_division(int layers, const std::vector<int>& counts) {
  if (!counts.empty()) (void)partition_layers(layers, static_cast<int>(counts.size()), counts);
}

/// Returns the number of stages of a schedule, over all ranks.
[[nodiscard]] inline int stages_of(const Schedule& schedule) {
  int count = 0;
  for (const Buffer& buffer : schedule.buffers())
    count = std::max(count, static_cast<int>(+buffer.stage) + 1);
  return count;
}

HEDDLE_FULL_INLINE StagePlacement::StagePlacement(int layers, MakeStage make, StagesOptions options,
                                                  const StageTraits& traits)
    : m_layers(layers), m_make(std::move(make)), m_options(std::move(options)), m_traits(traits) {
  constexpr const char* where = "heddle::Stages";
  expects(layers >= 1, [&] {
    return ErrorInfo{where, "a model needs at least one layer", text("layers = ", layers)};
  });
  expects(m_make != nullptr, [&] {
    return ErrorInfo{where, "the function `make` of the stages is empty"};
  });
  expect_enumerator(where, "gradient_sum", m_options.gradient_sum, GradientSum::stages);
  expect_enumerator(where, "path", m_options.path, DevicePath::owned);
  expect_division(layers, m_options.layers_per_stage);
}

HEDDLE_FULL_INLINE const Communicator* StagePlacement::replicas_on(DeviceMesh& mesh) const {
  if (m_options.gradient_sum != GradientSum::library) return nullptr;
  std::vector<std::string_view> names;
  for (const MeshShape::Axis& axis : mesh.shape().axes())
    if (axis.name != m_options.pipe_axis && axis.size > 1 &&
        std::find(m_options.shard_axes.begin(), m_options.shard_axes.end(), axis.name) ==
            m_options.shard_axes.end())
      names.emplace_back(axis.name);
  return names.empty() ? nullptr : &mesh[names];
}

HEDDLE_FULL_INLINE PlacedStages StagePlacement::prepare(Schedule schedule, const StagesMesh& mesh,
                                                        const TransportRef& transport,
                                                        const ExecuteOptions& options,
                                                        HeldStages& held) const {
  check_stages(schedule, m_options.gradient_sum, m_traits, mesh.planned != nullptr);
  PlacedStages placed;
  const SampleRanges ranges(schedule);
  std::vector<int> layers = m_options.layers_per_stage;
  const Plan* plan = m_plan ? &*m_plan : nullptr;
  if (mesh.planned != nullptr) {
    plan = &mesh.planned->plan();
    layers = layers_of(*plan, m_layers);
    placed.sum.by_stages = m_options.gradient_sum == GradientSum::stages && !plan->sharding.empty();
    if (m_options.gradient_sum == GradientSum::library) placed.sum.replicas = &mesh.planned->data();
  }
  std::size_t coordinate = +transport.rank();  // in the schedule of one line
  if (mesh.axes != nullptr) {
    const MeshShape& shape = mesh.axes->shape();
    coordinate = shape.has(m_options.pipe_axis)
                     ? static_cast<std::size_t>(
                           shape.coordinate(transport.rank(), shape.axis(m_options.pipe_axis)))
                     : 0;
    schedule = schedule::data_parallel(schedule, shape, m_options.pipe_axis, m_options.shard_axes);
    placed.sum.replicas = replicas_on(*mesh.axes);
  }
  if (m_options.eager_sum) schedule = schedule::eager_sums(schedule);
  const MPI_Comm all = mesh.planned != nullptr ? mesh.planned->all().get()
                       : mesh.axes != nullptr  ? mesh.axes->all().get()
                                               : MPI_COMM_NULL;
  if (placed.sum.replicas != nullptr) placed.sum.watch(transport, options, all);
  std::optional<SampleRange> planned;
  if (plan != nullptr) planned = planned_samples(*plan, Rank{coordinate}, schedule, ranges);
  if (planned) placed.samples = static_cast<std::size_t>(planned->size());
  held.build(
      schedule, partition_layers(m_layers, stages_of(schedule), layers), m_make,
      [&](Stage stage) { return planned ? *planned : ranges.of(Rank{coordinate}, stage); },
      mesh.planned, transport, options);
  // Every rank sends its sizes to the others, because parts of a stage may have different sizes.
  std::vector<StageElements> mine;
  for (const HeldStage& each : held.all()) mine.push_back(each.sizes);
  const SizesOfRanks sizes(all_gather<StageElements>(transport, mine, options));
  schedule = with_stage_sizes(schedule, sizes, m_traits.type);
  if (m_options.gradient_sum == GradientSum::sharded)
    schedule = schedule::shard_updates(schedule);
  else if (m_options.gradient_sum != GradientSum::library && !placed.sum.by_stages)
    schedule = schedule::expand(schedule, schedule::CollectiveForm{});
  const bool alike = plan == nullptr && m_options.shard_axes.empty();  // replicas have equal values
  schedule = schedule::tie_parameters(schedule,
                                      tied_ranges(held.all(), m_traits, alike, transport, options),
                                      sizes.update_shares(size_of(m_traits.type)));
  placed.schedule = m_options.pass ? m_options.pass(schedule) : std::move(schedule);
  return placed;
}

HEDDLE_FULL_INLINE void StagePlacement::divide(std::vector<int> layers_per_stage) {
  expect_division(m_layers, layers_per_stage);
  m_plan.reset();
  m_options.layers_per_stage = std::move(layers_per_stage);
}

HEDDLE_FULL_INLINE void StagePlacement::begin_plan(const Plan& plan) {
  check_alone(plan, m_layers);
  std::vector<int> counts;
  for (const PlanStage& stage : schedule::in_buckets(plan).stages)
    counts.push_back(stage.layers.size());
  divide(std::move(counts));
  m_plan = plan;
}

HEDDLE_FULL_INLINE std::unique_ptr<AnyStage> StagePlacement::make(const StagePlace& place) const {
  const LayerRange layers = place.layers;
  expects(layers.first >= 0 && layers.first < layers.last && layers.last <= m_layers, [&] {
    return ErrorInfo{"heddle::Stages::make", "a stage holds at least one layer of the model",
                     text("layers ", layers.first, " to ", layers.last, " of ", m_layers)};
  });
  const SampleRange samples = place.samples;
  expects(samples.begin >= 0 && samples.begin <= samples.end, [&] {
    return ErrorInfo{"heddle::Stages::make", "samples do not end before they begin",
                     text("samples ", samples.begin, " to ", samples.end)};
  });
  return m_make(place);
}

}  // namespace heddle::inline v0::impl
