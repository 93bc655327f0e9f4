// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// Definitions of stages.hpp.

#include <algorithm>
#include <cstddef>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <mpi.h>

#include <heddle/comm/device_mesh.hpp>
#include <heddle/comm/internal/roll_call.hpp>
#include <heddle/comm/planned_mesh.hpp>
#include <heddle/core/contract.hpp>
#include <heddle/core/error.hpp>
#include <heddle/core/internal/enumerator.hpp>
#include <heddle/core/linkage.hpp>
#include <heddle/core/text.hpp>
#include <heddle/core/units.hpp>
#include <heddle/execute/await.hpp>
#include <heddle/execute/clock.hpp>
#include <heddle/execute/exchange.hpp>
#include <heddle/pipeline/impl/held_stages.hpp>
#include <heddle/pipeline/impl/plan_places.hpp>
#include <heddle/pipeline/impl/sample_ranges.hpp>
#include <heddle/pipeline/impl/stage_calls.hpp>
#include <heddle/pipeline/impl/stage_sizes.hpp>
#include <heddle/pipeline/impl/tied_stages.hpp>
#include <heddle/pipeline/partition.hpp>
#include <heddle/pipeline/stages.hpp>
#include <heddle/plan/migration.hpp>
#include <heddle/schedule/action_text.hpp>
#include <heddle/schedule/collective/form.hpp>
#include <heddle/schedule/pass/data_parallel.hpp>
#include <heddle/schedule/pass/expand.hpp>
#include <heddle/schedule/pass/gradient_sum.hpp>
#include <heddle/schedule/pass/shard_updates.hpp>
#include <heddle/schedule/pass/tie_parameters.hpp>
#include <heddle/schedule/plan.hpp>

namespace heddle::inline v0 {
namespace impl {

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

/// Throws if the batch and the schedule have different numbers of microbatches.
inline void expect_microbatches_of(const Schedule& schedule, std::span<const HeldStage> stages) {
  std::size_t scheduled = 0;
  for (const HeldStage& held : stages) {
    const std::optional<std::size_t> given = held.stage->microbatches();
    if (!given) continue;
    if (scheduled == 0)
      for (const Action& action : schedule.actions())
        if (action.kind == Kind::forward) scheduled = std::max(scheduled, +action.item + 1);
    expects(*given == scheduled, [&] {
      return ErrorInfo{
          "heddle::Stages", "the batch has another number of microbatches",
          text(*given, " in the batch, ", scheduled, " in the schedule '", schedule.name(), "'"),
          text("begin the step with ", scheduled, " microbatches")};
    });
  }
}

}  // namespace impl

struct StagesBase::State {
  State(int count, impl::MakeStage maker, StagesOptions chosen, const impl::StageTraits& type)
      : layers(count),
        make(std::move(maker)),
        options(std::move(chosen)),
        traits(type),
        held(type),
        calls(type) {}

  /// Returns the ranks over which MPI sums gradients: those that differ on the axes of replicas.
  /// Null if there are no replicas, or if the sum is part of the schedule.
  [[nodiscard]] const Communicator* replicas_on(DeviceMesh& mesh) const {
    if (options.gradient_sum != GradientSum::library) return nullptr;
    std::vector<std::string_view> names;
    for (const MeshAxis& axis : mesh.shape().axes())
      if (axis.name != options.pipe_axis && axis.size > 1 &&
          std::find(options.shard_axes.begin(), options.shard_axes.end(), axis.name) ==
              options.shard_axes.end())
        names.emplace_back(axis.name);
    return names.empty() ? nullptr : &mesh[names];
  }

  void sum_group(const Task& task) const {
    if (stages_sum) return;
    expects(replicas != nullptr, [] {
      return ErrorInfo{"heddle::Stages",
                       "a group action needs a DeviceMesh to run on",
                       {},
                       "give Runner a DeviceMesh or a PlannedMesh, or use GradientSum::ring"};
    });
    const BoundUse& use = task.uses()[0];
    traits.space->sum_over_ranks(traits.type, use.data, use.bytes, *replicas,
                                 [&, since = steady_seconds()] { look_up(task, since); });
  }

  int layers;
  impl::MakeStage make;
  StagesOptions options;
  impl::StageTraits traits;
  std::optional<Plan> plan = {};  ///< the plan of begin_plan()
  impl::HeldStages held;
  impl::StageCalls calls;
  bool counted = false;  ///< true if the microbatches of this step have been counted
  const Communicator* replicas = nullptr;
  bool stages_sum = false;  ///< true if the stages of a plan sum their gradients themselves
  /// The function to call when this rank has reached `task` at time `since`. It throws if another
  /// rank has failed or is late.
  std::function<void(const Task& task, Seconds since)> look_up = {};
};

HEDDLE_FULL_INLINE StagesBase::StagesBase(int layers, impl::MakeStage make, StagesOptions options,
                                          const impl::StageTraits& traits)
    : m_state(std::make_unique<State>(layers, std::move(make), std::move(options), traits)) {
  constexpr const char* where = "heddle::Stages";
  expects(layers >= 1, [&] {
    return ErrorInfo{where, "a model needs at least one layer", text("layers = ", layers)};
  });
  expects(m_state->make != nullptr, [&] {
    return ErrorInfo{where, "the function `make` of the stages is empty"};
  });
  const StagesOptions& chosen = m_state->options;
  impl::expect_enumerator(where, "gradient_sum", chosen.gradient_sum, GradientSum::stages);
  impl::expect_enumerator(where, "path", chosen.path, DevicePath::owned);
  impl::expect_division(layers, chosen.layers_per_stage);
}
HEDDLE_FULL_INLINE StagesBase::StagesBase(StagesBase&&) noexcept = default;
HEDDLE_FULL_INLINE StagesBase& StagesBase::operator=(StagesBase&&) noexcept = default;
HEDDLE_FULL_INLINE StagesBase::~StagesBase() = default;

HEDDLE_FULL_INLINE Schedule StagesBase::prepare_on(Schedule schedule, const impl::StagesMesh& mesh,
                                                   const TransportRef& transport,
                                                   const ExecuteOptions& options) {
  State& own = *m_state;
  const StagesOptions& chosen = own.options;
  own.replicas = nullptr;
  own.stages_sum = false;
  impl::check_stages(schedule, chosen.gradient_sum, own.traits, mesh.planned != nullptr);
  const impl::SampleRanges ranges(schedule);
  std::vector<int> layers = chosen.layers_per_stage;
  const Plan* plan = own.plan ? &*own.plan : nullptr;
  if (mesh.planned != nullptr) {
    plan = &mesh.planned->plan();
    layers = impl::layers_of(*plan, own.layers);
    own.stages_sum = chosen.gradient_sum == GradientSum::stages && !plan->sharding.empty();
    if (chosen.gradient_sum == GradientSum::library) own.replicas = &mesh.planned->data();
  }
  std::size_t coordinate = +transport.rank();  // in the schedule of one line
  if (mesh.axes != nullptr) {
    const MeshShape& shape = mesh.axes->shape();
    coordinate = shape.has(chosen.pipe_axis) ? static_cast<std::size_t>(shape.coordinate(
                                                   transport.rank(), shape.axis(chosen.pipe_axis)))
                                             : 0;
    schedule = schedule::data_parallel(schedule, shape, chosen.pipe_axis, chosen.shard_axes);
    own.replicas = own.replicas_on(*mesh.axes);
  }
  if (chosen.eager_sum) schedule = schedule::eager_sums(schedule);
  const MPI_Comm all = mesh.planned != nullptr ? mesh.planned->all().get()
                       : mesh.axes != nullptr  ? mesh.axes->all().get()
                                               : MPI_COMM_NULL;
  own.look_up = [transport, options, all, &own](const Task& task, Seconds since) {
    const auto where = [&] {
      return text("heddle::Stages, rank ", transport.rank(), " at ",
                  schedule::action_text(task.schedule(), task.id()),
                  ", the sum of gradients by MPI");
    };
    if (const std::optional<Abort> abort = transport.aborted()) throw impl::lost(where(), *abort);
    const bool late = options.watchdog > 0 && steady_seconds() - since > options.watchdog;
    if (late || impl::RollCall::begun(*own.replicas))
      throw impl::RollCall(*own.replicas, all)
          .stuck(where(), options, late,
                 "see what that replica is doing, or raise ExecuteOptions::watchdog");
  };
  std::optional<SampleRange> planned;
  if (plan != nullptr) planned = impl::planned_samples(*plan, Rank{coordinate}, schedule, ranges);
  own.calls.set_whole(planned ? static_cast<std::size_t>(planned->size()) : 0);
  own.held.build(
      schedule, partition_layers(own.layers, impl::stages_of(schedule), layers), own.make,
      [&](Stage stage) { return planned ? *planned : ranges.of(Rank{coordinate}, stage); },
      mesh.planned, transport, options);
  // Every rank sends its sizes to the others, because parts of a stage may have different sizes.
  std::vector<impl::StageElements> mine;
  for (const impl::HeldStage& held : own.held.all()) mine.push_back(held.sizes);
  const impl::SizesOfRanks sizes(all_gather<impl::StageElements>(transport, mine, options));
  schedule = impl::with_stage_sizes(schedule, sizes, own.traits.type);
  if (chosen.gradient_sum == GradientSum::sharded)
    schedule = schedule::shard_updates(schedule);
  else if (chosen.gradient_sum != GradientSum::library && !own.stages_sum)
    schedule = schedule::expand(schedule, schedule::CollectiveForm{});
  const bool alike = plan == nullptr && chosen.shard_axes.empty();  // replicas have equal values
  schedule = schedule::tie_parameters(
      schedule, impl::tied_ranges(own.held.all(), own.traits, alike, transport, options));
  return chosen.pass ? chosen.pass(schedule) : schedule;
}

HEDDLE_FULL_INLINE std::byte* StagesBase::memory(const Schedule& schedule, BufferId id) {
  const Buffer& buffer = schedule[id];
  const std::string& label = schedule[buffer.label];
  if (label == role::weights) return m_state->held.weights_of(buffer);
  if (label == role::gradients) return held(buffer.stage).added_gradients();
  return nullptr;
}

HEDDLE_FULL_INLINE std::shared_ptr<std::byte> StagesBase::allocate(Bytes bytes) const {
  const impl::StageSpace& space = *m_state->traits.space;
  std::shared_ptr<std::byte> block =
      m_state->options.allocate ? m_state->options.allocate(bytes)
                                : space.allocate_message("heddle::pipeline::buffer", bytes);
  expects(block != nullptr || bytes == 0, [&] {
    return ErrorInfo{"heddle::Stages", "StagesOptions::allocate returned a null pointer",
                     text("for ", bytes, " bytes"), "throw out_of_memory if there is no memory"};
  });
  space.clear(block.get(), bytes);
  return block;
}

HEDDLE_FULL_INLINE StepResult StagesBase::end_step(const TransportRef& transport,
                                                   const ExecuteOptions& options) {
  double mine = 0;
  for (const auto& [forward, output] : m_state->calls.made())
    mine += held(forward.first).loss(forward.second);
  StepResult result;
  for (const auto& each : all_gather<double>(transport, std::span(&mine, 1), options))
    result.loss += each[0];
  return result;
}

HEDDLE_FULL_INLINE void StagesBase::operator()(const Task& task) {
  State& own = *m_state;
  if (!std::exchange(own.counted, true))
    impl::expect_microbatches_of(task.schedule(), own.held.all());
  const Kind kind = task.kind();
  if (kind == Kind::combine) return own.traits.space->combine(task);
  if (kind == Kind::cast) return own.traits.space->cast(task);
  if (kind == Kind::group) return own.sum_group(task);
  if (kind == Kind::move) {  // within this rank: the samples that the next stage needs of ours
    const auto uses = task.uses();
    return own.traits.space->copy(uses[0].data, uses[1].data, uses[0].bytes);
  }
  expects(kind <= Kind::backward || kind == Kind::update, [&] {
    return ErrorInfo{"heddle::Stages", "the stages cannot perform this kind of action",
                     schedule::action_text(task.schedule(), task.id())};
  });
  if (kind == Kind::update) return own.held.update(task.stage(), task.uses());
  own.calls.perform(task, own.held);
}

HEDDLE_FULL_INLINE void StagesBase::divide(std::vector<int> layers_per_stage) {
  impl::expect_division(m_state->layers, layers_per_stage);
  m_state->plan.reset();
  m_state->options.layers_per_stage = std::move(layers_per_stage);
}

HEDDLE_FULL_INLINE void StagesBase::begin_plan(const Plan& plan) {
  impl::check_alone(plan, m_state->layers);
  std::vector<int> counts;
  for (const PlanStage& stage : schedule::in_buckets(plan).stages)
    counts.push_back(stage.layers.size());
  divide(std::move(counts));
  m_state->plan = plan;
}

HEDDLE_FULL_INLINE const plan::Moved& StagesBase::migrated() const noexcept {
  return m_state->held.migrated();
}

HEDDLE_FULL_INLINE int StagesBase::layers() const noexcept { return m_state->layers; }

HEDDLE_FULL_INLINE std::span<const impl::HeldStage> StagesBase::held() const {
  return m_state->held.all();
}

HEDDLE_FULL_INLINE impl::AnyStage& StagesBase::held(Stage number) {
  return *m_state->held.held(number).stage;
}

HEDDLE_FULL_INLINE std::unique_ptr<impl::AnyStage> StagesBase::make_any(
    const StagePlace& place) const {
  const LayerRange layers = place.layers;
  expects(layers.first >= 0 && layers.first < layers.last && layers.last <= m_state->layers, [&] {
    return ErrorInfo{"heddle::Stages::make", "a stage holds at least one layer of the model",
                     text("layers ", layers.first, " to ", layers.last, " of ", m_state->layers)};
  });
  const SampleRange samples = place.samples;
  expects(samples.begin >= 0 && samples.begin <= samples.end, [&] {
    return ErrorInfo{"heddle::Stages::make", "samples do not end before they begin",
                     text("samples ", samples.begin, " to ", samples.end)};
  });
  return m_state->make(place);
}

HEDDLE_FULL_INLINE std::span<const std::byte> StagesBase::output_of(Stage number, Item item) const {
  const impl::StageCalls::Made& made = m_state->calls.made();
  const auto found = made.find({number, item});
  expects(found != made.end() && !found->second.empty(), [&] {
    std::size_t kept = 0;
    for (const auto& [forward, output] : made)
      if (forward.first == number && !output.empty()) ++kept;
    return ErrorInfo{
        "heddle::Stages::output",
        "the output of this stage and microbatch was not kept on this rank",
        text("microbatch ", item, " of stage ", number, ", of which the last step kept ", kept,
             " microbatches on this rank"),
        "ask for the output of a last stage, after a step of forward passes only, on the rank "
        "that ran it"};
  });
  return found->second;
}

HEDDLE_FULL_INLINE const StagesOptions& StagesBase::options() const noexcept {
  return m_state->options;
}

HEDDLE_FULL_INLINE void StagesBase::begin() {
  m_state->calls.begin_step();
  m_state->counted = false;
}

HEDDLE_FULL_INLINE void StagesBase::note_written() { m_state->held.state_written(); }

}  // namespace heddle::inline v0
