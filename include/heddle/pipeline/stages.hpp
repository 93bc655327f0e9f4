// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// Stages: the model of a Runner for models that consist of pipeline stages. It builds the stages
/// of this rank, sets the sizes and memory of the schedule's buffers, and turns actions into calls
/// of the stages.

#include <algorithm>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <Kokkos_Core.hpp>

#include <heddle/collective/cast.hpp>
#include <heddle/collective/combine.hpp>
#include <heddle/collective/sum_in_place.hpp>
#include <heddle/comm/device_mesh.hpp>
#include <heddle/comm/device_transport.hpp>
#include <heddle/comm/planned_mesh.hpp>
#include <heddle/core/contract.hpp>
#include <heddle/core/text.hpp>
#include <heddle/core/units.hpp>
#include <heddle/execute/await.hpp>
#include <heddle/execute/exchange.hpp>
#include <heddle/execute/runner.hpp>
#include <heddle/kernel/blas_library.hpp>
#include <heddle/memory/message_memory.hpp>
#include <heddle/pipeline/impl/held_stages.hpp>
#include <heddle/pipeline/impl/plan_places.hpp>
#include <heddle/pipeline/impl/sample_ranges.hpp>
#include <heddle/pipeline/impl/stage_calls.hpp>
#include <heddle/pipeline/impl/stage_sizes.hpp>
#include <heddle/pipeline/partition.hpp>
#include <heddle/pipeline/stage.hpp>
#include <heddle/pipeline/stage_place.hpp>
#include <heddle/pipeline/stages_options.hpp>
#include <heddle/pipeline/state.hpp>
#include <heddle/plan/migration.hpp>
#include <heddle/schedule/action_text.hpp>
#include <heddle/schedule/collective/form.hpp>
#include <heddle/schedule/pass/data_parallel.hpp>
#include <heddle/schedule/pass/expand.hpp>
#include <heddle/schedule/pass/gradient_sum.hpp>
#include <heddle/schedule/pass/shard_updates.hpp>
#include <heddle/schedule/plan.hpp>

namespace heddle::inline v0 {

/// The result of a training step.
struct StepResult {
  double loss = 0;  ///< the sum of loss(Item) over all microbatches of all replicas
};

namespace impl {

// What a stage may have. Concepts, and not requirements in place, for the reason that stands beside
// those of the Runner.

/// A stage whose begin_step() accepts `Arguments` at the start of a step.
template <class S, class... Arguments>
concept StageBeginsSteps = requires(S& stage, const Arguments&... arguments) {
  stage.begin_step(arguments...);
};
/// A stage that returns the number of microbatches of the last begin_step(), if it knows it.
template <class S>
concept CountsMicrobatches = requires(const S& stage) {
  { stage.microbatches() } -> std::convertible_to<std::optional<std::size_t>>;
};
/// A stage that returns its share of the loss.
template <class S>
concept HasLoss = requires(const S& stage) {
  stage.loss(Item{});
};

/// Returns the library that multiplies matrices on the processors of a stage.
template <class S>
[[nodiscard]] kernel::BlasLibrary blas_of() {
  if constexpr (requires { typename S::execution_space; })
    return kernel::blas_library<typename S::execution_space>();
  else
    return kernel::blas_library<typename S::memory_space::execution_space>();
}

}  // namespace impl

/// A Model for Runner that consists of pipeline stages. It holds the stages of this rank.
///
/// `make(first, last)` builds the stage that holds the layers [first, last). If ranks divide the
/// samples of a microbatch (see StageShares), `make(place)` also gets the samples of its rank. On a
/// PlannedMesh, layers and samples are those of its plan, and `make(place)` also gets the mesh.
///
/// A model with branches counts its layers branch after branch, in the order in which its graph
/// counts the stages. It is divided so that no stage holds layers of two branches. If two stages
/// share a loss, backward_input gets the output of the other stage instead of the gradient of its
/// output. Both outputs must have the same size, each stage may have only one such partner, and its
/// output may have no other use.
///
/// A stage with several inputs gets them concatenated, in the order of the graph's edges;
/// input_size counts all of them. The gradient that it computes has the same order. If several
/// stages use an output, the gradient of that output is the sum of their gradients, in the same
/// order.
///
/// With a schedule of forwards only, such as stream() and energon(), nothing is saved for backward
/// passes, and a last stage may have an output. output(stage, item) then returns it.
///
/// Several Runners may use one model alternately, for example to train and to infer. Their
/// schedules must give this rank the same layers, and one version of the weights.
///
/// A Runner may also divide the layers in another way than the one before, or give a stage to more
/// or fewer ranks. If the stages have named state (see HasState), it goes to all ranks that hold
/// the layers from then on. Both stages of a layer exist until it has arrived. A stage is made anew
/// if its layers, its samples or, on a PlannedMesh, its communicators have changed. Without named
/// state, a model that has been trained keeps its division: a Runner that would drop what the model
/// has learned is rejected.
///
/// The arguments of Runner::step are passed to the `begin_step` of every stage. A stage with
/// `loss(Item)` contributes to the StepResult. Buffers are in the memory space of the stages. When
/// a Runner is constructed, ExecuteOptions::log gets two lines: the path of messages from that
/// memory, and the library that kernel::gemm() calls there (see kernel::BlasLibrary).
template <PipelineStage S>
class Stages {
 public:
  using scalar_type = typename S::scalar_type;    ///< the type of parameters and activations
  using memory_space = typename S::memory_space;  ///< the memory that holds them

  /// Constructs a model of `layers` layers, divided as `options` say. The stages are built when a
  /// Runner is constructed.
  Stages(int layers, std::function<S(int first, int last)> make, StagesOptions options = {})
      : Stages(
            layers,
            std::function<S(const StagePlace&)>([make = std::move(make)](const StagePlace& place) {
              return make(place.layers.first, place.layers.last);
            }),
            std::move(options)) {}

  /// Constructs the model from a function that also gets the samples of the rank. `make(place)`
  /// builds the stage of a StagePlace. Schedules with StageShares need it.
  Stages(int layers, std::function<S(const StagePlace&)> make, StagesOptions options = {})
      : m_layers(layers), m_make(std::move(make)), m_options(std::move(options)) {}

  /// Builds this rank's stages and sets the sizes of the buffers. Called by Runner.
  template <Place P>
  [[nodiscard]] Schedule prepare(Schedule schedule, P& place, const ExecuteOptions& options) {
    m_replicas = nullptr;
    m_stages_sum = false;
    check(schedule, std::same_as<P, PlannedMesh>);
    const impl::SampleRanges ranges(schedule);
    std::vector<int> layers = m_options.layers_per_stage;
    const Plan* plan = m_plan ? &*m_plan : nullptr;
    const PlannedMesh* mesh = nullptr;
    if constexpr (std::same_as<P, PlannedMesh>) {
      mesh = &place;
      plan = &place.plan();
      layers = impl::layers_of(*plan, m_layers);
      m_stages_sum = m_options.gradient_sum == GradientSum::stages && !plan->sharding.empty();
      if (m_options.gradient_sum == GradientSum::library) m_replicas = &place.data();
    }
    std::size_t coordinate = +transport_of(place).rank();  // in the schedule of one line
    if constexpr (std::same_as<P, DeviceMesh>) {
      const MeshShape& shape = place.shape();
      coordinate = shape.has(m_options.pipe_axis)
                       ? static_cast<std::size_t>(shape.coordinate(place.transport().rank(),
                                                                   shape.axis(m_options.pipe_axis)))
                       : 0;
      schedule = data_parallel(schedule, place.shape(), m_options.pipe_axis, m_options.shard_axes);
      m_replicas = replicas(place);
    }
    if (m_options.eager_sum) schedule = eager_sums(schedule);
    auto& transport = transport_of(place);
    m_look_up = [&transport, watchdog = options.watchdog](const Task& task, Seconds since) {
      const auto where = [&] {
        return text("heddle::Stages, rank ", transport.rank(), " at ",
                    action_text(task.schedule(), task.id()));
      };
      look_up(transport, since, watchdog, where, [&] {
        return ErrorInfo{where(), "stuck: another rank does not take part in the sum of gradients",
                         text("watchdog after ", watchdog, " s"),
                         "see what the replicas are doing, or raise ExecuteOptions::watchdog"};
      });
    };
    std::optional<SampleRange> planned;
    if (plan != nullptr) planned = impl::planned_samples(*plan, Rank{coordinate}, schedule, ranges);
    m_calls.set_whole(planned ? static_cast<std::size_t>(planned->size()) : 0);
    m_held.build(
        schedule, partition_layers(m_layers, stages_of(schedule), layers), m_make,
        [&](Stage stage) { return planned ? *planned : ranges.of(Rank{coordinate}, stage); }, mesh,
        transport, options);
    schedule = sized(schedule, transport, options);
    if (m_options.gradient_sum == GradientSum::sharded)
      schedule = shard_updates(schedule);
    else if (m_options.gradient_sum != GradientSum::library && !m_stages_sum)
      schedule = expand(schedule, schedule::CollectiveForm{});
    return m_options.pass ? m_options.pass(schedule) : schedule;
  }

  /// Returns the memory of weights and gradients, which belongs to the stages. If weights have
  /// several versions, Stages allocates all of them, and parameters() of a stage then refers to
  /// this memory. Called by Runner.
  [[nodiscard]] std::byte* memory(const Schedule& schedule, BufferId id) {
    const Buffer& buffer = schedule[id];
    const std::string& label = schedule[buffer.label];
    if (label == role::weights) return bytes_of(m_held.weights_of(buffer));
    if (label == role::gradients) return bytes_of(impl::added_gradients(at(buffer.stage)).data());
    return nullptr;
  }

  /// Allocates every other buffer as a View of zeros. Zero is also the initial value of the
  /// rounding errors that messages at cuts accumulate. Called by Runner.
  [[nodiscard]] std::shared_ptr<std::byte> allocate(Bytes bytes) const {
    using Bare = Kokkos::View<std::byte*, memory_space, Kokkos::MemoryUnmanaged>;
    if (m_options.allocate) {
      std::shared_ptr<std::byte> block = m_options.allocate(bytes);
      Kokkos::deep_copy(Bare(block.get(), bytes), std::byte{});
      return block;
    }
    const auto view = memory::message_buffer<memory_space>("heddle::pipeline::buffer", bytes);
    Kokkos::deep_copy(view, std::byte{});
    return {view.data(), [view](std::byte*) {}};
  }

  /// Returns the transport for messages in the memory space of the stages. Called by Runner.
  template <Transport T>
  [[nodiscard]] auto carrier(T& transport, const ExecuteOptions& options) const {
    DeviceTransport<T, memory_space> carrier(transport, m_options.path);
    if (options.log) {
      options.log(text("heddle::Stages: ", carrier));
      options.log(text("heddle::kernel::gemm: ", impl::blas_of<S>()));
    }
    return carrier;
  }

  /// Passes the arguments of Runner::step() to the stages. Called by Runner.
  template <class... Arguments>
  void begin_step(const Arguments&... arguments) {
    m_calls.begin_step();
    m_counted = false;
    if constexpr (impl::StageBeginsSteps<S, Arguments...>)
      m_held.for_each([&](Stage, S& stage) { stage.begin_step(arguments...); });
    else
      static_assert(sizeof...(Arguments) == 0,
                    "heddle::Stages: the stages have no begin_step for these arguments");
  }

  /// Sums the losses of all ranks. All ranks must call it. Called by Runner.
  template <Transport T>
  [[nodiscard]] StepResult end_step(T& transport, const ExecuteOptions& options) {
    double mine = 0;
    if constexpr (impl::HasLoss<S>)
      for (const auto& [forward, output] : m_calls.made())
        mine += at(forward.first).loss(forward.second);
    StepResult result;
    for (const auto& each : all_gather_values<double>(transport, std::span(&mine, 1), options))
      result.loss += each[0];
    return result;
  }

  /// Performs one action. The positions of the uses are those that weave() states.
  void operator()(const Task& task) {
    if constexpr (impl::CountsMicrobatches<S>)
      if (!std::exchange(m_counted, true)) expect_microbatches_of(task.schedule());
    const Kind kind = task.kind();
    if (kind == Kind::combine) return combine_in<memory_space>(task);
    if (kind == Kind::cast) return cast_in<memory_space>(task);
    if (kind == Kind::group) return sum_group(task);
    if (kind == Kind::move) {  // within this rank: the samples that the next stage needs of ours
      const auto uses = task.uses();
      return impl::copy_elements<memory_space>(reinterpret_cast<scalar_type*>(uses[1].data),
                                               reinterpret_cast<const scalar_type*>(uses[0].data),
                                               uses[0].bytes / sizeof(scalar_type));
    }
    expects(kind <= Kind::backward || kind == Kind::update, [&] {
      return ErrorInfo{"heddle::Stages", "the stages cannot perform this kind of action",
                       action_text(task.schedule(), task.id())};
    });
    if (kind == Kind::update) return m_held.update(task.stage(), task.uses());
    m_calls(task, [this](Stage number) -> S& { return at(number); });
  }

  /// Returns the stage `number`. @throws contract_error if it is on another rank.
  [[nodiscard]] S& at(Stage number) { return m_held.at(number); }

  /// Calls `visit(number, stage)` for every stage of this rank, in ascending order.
  template <class Visit>
  void for_each(Visit&& visit) {
    m_held.for_each(visit);
  }

  /// Returns the output of stage `number` of this rank for a microbatch of the last step:
  /// output_size() elements in memory_space, valid until the next step. It is for schedules without
  /// backward actions. @throws contract_error if this rank has not computed the output, or has sent
  /// it on.
  [[nodiscard]] std::span<const scalar_type> output(Stage number, Item item) const {
    const auto& made = m_calls.made();
    const auto found = made.find({number, item});
    expects(found != made.end() && !found->second.empty(), [&] {
      const auto kept = std::ranges::count_if(made, [&](const auto& each) {
        return each.first.first == number && !each.second.empty();
      });
      return ErrorInfo{
          "heddle::Stages::output",
          "the output of this stage and microbatch was not kept on this rank",
          text("microbatch ", item, " of stage ", number, ", of which the last step ", "kept ",
               kept, " microbatches on this rank"),
          "ask for the output of a last stage, after a step of forward passes only, on the rank "
          "that ran it"};
    });
    return found->second;
  }

  /// Builds the stage of `place` by the function of the constructor, apart from the stages of a
  /// Runner. See profile_layers().
  [[nodiscard]] S make(const StagePlace& place) const { return m_make(place); }

  /// Calls `visitor(array)` for every StateArray of this rank's stages. Layers are counted over the
  /// whole model.
  template <class Visitor>
  requires HasState<S>
  void visit_state(Visitor&& visitor) { m_held.visit_state(visitor); }
  /// Tells the stages that their state was written. All ranks must call it.
  void state_written() requires HasState<S> { m_held.state_written(); }

  /// Sets StagesOptions::layers_per_stage for the Runners that follow.
  void divide(std::vector<int> layers_per_stage) {
    m_plan.reset();
    m_options.layers_per_stage = std::move(layers_per_stage);
  }
  /// Divides the layers as the stages of a plan do, and the samples as their groups do, for the
  /// Runners that follow. They must run plan::schedule() of this plan. Called by Replanner. On a
  /// PlannedMesh, the plan of the mesh counts.
  void begin_plan(const Plan& plan) {
    std::vector<int> counts;
    for (const PlanStage& stage : in_buckets(plan).stages) counts.push_back(stage.layers.size());
    divide(std::move(counts));
    m_plan = plan;
  }
  /// Returns the bytes and messages that all ranks sent when the state last went to another
  /// division of the layers.
  [[nodiscard]] const plan::Moved& migrated() const noexcept { return m_held.migrated(); }

  /// Returns the number of layers of the whole model.
  [[nodiscard]] int layers() const noexcept { return m_layers; }

 private:
  static std::byte* bytes_of(scalar_type* data) { return reinterpret_cast<std::byte*>(data); }

  /// Returns the ranks over which MPI sums gradients: those that differ on the axes of replicas.
  /// Null if there are no replicas, or if the sum is part of the schedule.
  const Communicator* replicas(DeviceMesh& mesh) const {
    if (m_options.gradient_sum != GradientSum::library) return nullptr;
    std::vector<std::string_view> names;
    for (const MeshAxis& axis : mesh.shape().axes())
      if (axis.name != m_options.pipe_axis && axis.size > 1 &&
          std::ranges::find(m_options.shard_axes, axis.name) == m_options.shard_axes.end())
        names.emplace_back(axis.name);
    return names.empty() ? nullptr : &mesh[names];
  }

  /// Throws if these stages cannot run `schedule`. The result is the same on all ranks.
  void check(const Schedule& schedule, bool planned) const {
    for (const Action& action : schedule.actions())
      if (action.kind == Kind::group && m_options.gradient_sum == GradientSum::library && !planned)
        throw infeasible(
            {"heddle::Stages",
             "GradientSum::library cannot sum gradients of replicas within the pipeline",
             text("'", schedule.name(), "' has replicas of stages within the pipeline"),
             "use GradientSum::ring"});
    if constexpr (!impl::UpdatesParts<S>)
      expects(m_options.gradient_sum != GradientSum::sharded, [] {
        return ErrorInfo{
            "heddle::Stages", "the stages cannot update a part of their parameters",
            "StagesOptions::gradient_sum is GradientSum::sharded",
            "add the member update(first, count) to the stage, or use GradientSum::ring"};
      });
    if constexpr (!impl::UsesParameters<S>)
      for (const Buffer& buffer : schedule.buffers())
        expects(buffer.parts == 1 || schedule[buffer.label] != role::weights, [&] {
          return ErrorInfo{
              "heddle::Stages", "the stages keep one version of their parameters",
              text("'", schedule.name(), "' needs ", buffer.parts, " of stage ", buffer.stage),
              "add the member use_parameters(pointer) to the stage; see PipelineStage"};
        });
  }

  /// Returns the number of stages of a schedule, over all ranks.
  [[nodiscard]] static int stages_of(const Schedule& schedule) {
    int count = 0;
    for (const Buffer& buffer : schedule.buffers())
      count = std::max(count, static_cast<int>(+buffer.stage) + 1);
    return count;
  }

  /// Returns the schedule with the sizes of all stages. Every rank sends its sizes to the others,
  /// because parts of a stage may have different sizes.
  template <Transport T>
  [[nodiscard]] Schedule sized(const Schedule& schedule, T& transport,
                               const ExecuteOptions& options) const {
    const impl::SizesOfRanks sizes(
        all_gather_values<impl::StageElements>(transport, m_held.sizes(), options));
    return impl::with_stage_sizes(schedule, sizes, scalar_of<scalar_type>);
  }

  void sum_group(const Task& task) {
    if (m_stages_sum) return;
    expects(m_replicas != nullptr, [] {
      return ErrorInfo{"heddle::Stages",
                       "a group action needs a DeviceMesh to run on",
                       {},
                       "give Runner a DeviceMesh or a PlannedMesh, or use GradientSum::ring"};
    });
    const BoundUse& use = task.uses()[0];
    const Kokkos::View<scalar_type*, memory_space, Kokkos::MemoryTraits<Kokkos::Unmanaged>> sum(
        reinterpret_cast<scalar_type*>(use.data), use.bytes / sizeof(scalar_type));
    all_reduce(typename memory_space::execution_space{}, sum, Sum{}, *m_replicas,
               [&, since = steady_seconds()] { m_look_up(task, since); });
  }

  /// Throws if the batch and the schedule have different numbers of microbatches.
  void expect_microbatches_of(const Schedule& schedule) const {
    std::size_t scheduled = 0;
    for (const Action& action : schedule.actions())
      if (action.kind == Kind::forward) scheduled = std::max(scheduled, +action.item + 1);
    m_held.for_each([&](Stage, const S& stage) {
      const std::optional<std::size_t> given = stage.microbatches();
      expects(!given || *given == scheduled, [&] {
        return ErrorInfo{
            "heddle::Stages", "the batch has another number of microbatches",
            text(*given, " in the batch, ", scheduled, " in the schedule '", schedule.name(), "'"),
            text("begin the step with ", scheduled, " microbatches")};
      });
    });
  }

  int m_layers;
  std::function<S(const StagePlace&)> m_make;
  StagesOptions m_options;
  std::optional<Plan> m_plan;  ///< the plan of begin_plan()
  impl::HeldStages<S> m_held;
  impl::StageCalls<S> m_calls;
  bool m_counted = false;  ///< true if the microbatches of this step have been counted
  const Communicator* m_replicas = nullptr;
  bool m_stages_sum = false;  ///< true if the stages of a plan sum their gradients themselves
  /// The function to call when this rank has reached `task` at time `since`. It throws if another
  /// rank has failed or is late.
  std::function<void(const Task& task, Seconds since)> m_look_up;
};

}  // namespace heddle::inline v0
