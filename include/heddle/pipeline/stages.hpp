// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// Stages: the model of a Runner for models that consist of pipeline stages. It builds the stages
/// of this rank, sets the sizes and memory of the schedule's buffers, and turns actions into calls
/// of the stages.

#include <cstddef>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include <heddle/comm/device_transport.hpp>
#include <heddle/core/linkage.hpp>
#include <heddle/core/text.hpp>
#include <heddle/core/units.hpp>
#include <heddle/execute/execute_options.hpp>
#include <heddle/execute/runner.hpp>
#include <heddle/execute/task.hpp>
#include <heddle/execute/transport_ref.hpp>
#include <heddle/kernel/blas_library.hpp>
#include <heddle/pipeline/impl/any_stage.hpp>
#include <heddle/pipeline/impl/stages_mesh.hpp>
#include <heddle/pipeline/stage.hpp>
#include <heddle/pipeline/stage_place.hpp>
#include <heddle/pipeline/stages_options.hpp>
#include <heddle/pipeline/state.hpp>
#include <heddle/plan/migration.hpp>
#include <heddle/schedule/schedule.hpp>

namespace heddle::inline v0 {

struct Plan;

/// The result of a training step.
struct StepResult {
  double loss = 0;  ///< the sum of loss(Item) over all microbatches of all replicas
};

namespace impl {

/// Returns the library that multiplies matrices on the processors of a stage.
template <class S>
[[nodiscard]] kernel::BlasLibrary blas_of() {
  if constexpr (requires { typename S::execution_space; })
    return kernel::blas_library<typename S::execution_space>();
  else
    return kernel::blas_library<typename S::memory_space::execution_space>();
}

}  // namespace impl

/// The members of Stages that do not depend on the type of the stages.
class StagesBase {
 public:
  /// Builds this rank's stages and sets the sizes of the buffers. Called by Runner.
  template <Place P>
  [[nodiscard]] Schedule prepare(Schedule schedule, P& place, const ExecuteOptions& options) {
    return prepare_on(std::move(schedule), impl::mesh_of(place), transport_of(place), options);
  }

  /// Returns the memory of weights and gradients, which belongs to the stages. If weights have
  /// several versions, Stages allocates all of them, and parameters() of a stage then refers to
  /// this memory. Called by Runner.
  [[nodiscard]] std::byte* memory(const Schedule& schedule, BufferId id);

  /// Allocates every other buffer with zeros. Zero is also the initial value of the rounding errors
  /// that messages at cuts accumulate. Called by Runner.
  [[nodiscard]] std::shared_ptr<std::byte> allocate(Bytes bytes) const;

  /// Sums the losses of all ranks. All ranks must call it. Called by Runner.
  [[nodiscard]] StepResult end_step(const TransportRef& transport, const ExecuteOptions& options);

  /// Performs one action. It finds the uses by their roles; uses of one role are in the order of
  /// the graph's edges.
  void operator()(const Task& task);

  /// Sets StagesOptions::layers_per_stage for the Runners that follow. @throws contract_error if
  /// they do not divide the layers of the model.
  void divide(std::vector<int> layers_per_stage);
  /// Divides the layers as the stages of a plan do, and the samples as their groups do, for the
  /// Runners that follow. They must run plan::schedule() of this plan. Called by AdaptiveRunner. On
  /// a PlannedMesh, the plan of the mesh counts. @throws contract_error as check(Plan).
  void begin_plan(const Plan& plan);
  /// Returns the bytes and messages that all ranks sent when the state last went to another
  /// division of the layers.
  [[nodiscard]] const plan::Moved& migrated() const noexcept;

  /// Returns the number of layers of the whole model.
  [[nodiscard]] int layers() const noexcept;

 protected:
  /// Constructed by Stages, which knows how to make a stage.
  StagesBase(int layers, impl::MakeStage make, StagesOptions options,
             const impl::StageTraits& traits);
  /// Moves the model.
  StagesBase(StagesBase&&) noexcept;
  /// Moves the model.
  StagesBase& operator=(StagesBase&&) noexcept;
  ~StagesBase();

  /// The stages of this rank, in ascending order.
  [[nodiscard]] std::span<const impl::HeldStage> held() const;
  /// The stage `number`. @throws contract_error if it is on another rank.
  [[nodiscard]] impl::AnyStage& held(Stage number);
  /// Makes the stage of `place`, apart from those of a Runner.
  [[nodiscard]] std::unique_ptr<impl::AnyStage> make_any(const StagePlace& place) const;
  /// The bytes of Stages::output().
  [[nodiscard]] std::span<const std::byte> output_of(Stage number, Item item) const;
  /// The options of the constructor.
  [[nodiscard]] const StagesOptions& options() const noexcept;
  /// Forgets the step before.
  void begin();
  /// Tells the stages that their state was written.
  void note_written();

 private:
  struct State;

  [[nodiscard]] Schedule prepare_on(Schedule schedule, const impl::StagesMesh& mesh,
                                    const TransportRef& transport, const ExecuteOptions& options);

  std::unique_ptr<State> m_state;
};

/// A Model for Runner that consists of pipeline stages. It holds the stages of this rank.
///
/// `make(first, last)` builds the stage that holds the layers [first, last). If ranks divide the
/// samples of a microbatch (see StageShares), `make(place)` also gets the samples of its rank. On a
/// PlannedMesh, layers and samples are those of its plan, and `make(place)` also gets the mesh.
///
/// A model with branches counts its layers branch after branch, in the order in which its graph
/// counts the stages. It is divided so that no stage holds layers of two branches. If stages share
/// a loss, backward_input gets the outputs of the other stages instead of the gradient of its
/// output, one after the other in the order of the graph's edges. All outputs must have the same
/// size, and may have no other use.
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
class Stages : public StagesBase {
 public:
  using scalar_type = typename S::scalar_type;    ///< the type of parameters and activations
  using memory_space = typename S::memory_space;  ///< the memory that holds them

  /// Constructs a model of `layers` layers, divided as `options` say. The stages are built when a
  /// Runner is constructed. @throws contract_error if there are no layers, if `make` is empty, if
  /// StagesOptions::layers_per_stage do not divide the layers, or if an option is no enumerator.
  Stages(int layers, std::function<S(int first, int last)> make, StagesOptions options = {})
      : StagesBase(layers,
                   maker_of(std::move(make),
                            [](const auto& of, const StagePlace& place) {
                              return of(place.layers.first, place.layers.last);
                            }),
                   std::move(options), impl::stage_traits<S>()) {}

  /// Constructs the model from a function that also gets the samples of the rank. `make(place)`
  /// builds the stage of a StagePlace. Schedules with StageShares need it. Throws as above.
  Stages(int layers, std::function<S(const StagePlace&)> make, StagesOptions options = {})
      : StagesBase(layers,
                   maker_of(std::move(make),
                            [](const auto& of, const StagePlace& place) { return of(place); }),
                   std::move(options), impl::stage_traits<S>()) {}

  /// Returns the transport for messages in the memory space of the stages. Called by Runner.
  template <Transport T>
  [[nodiscard]] auto carrier(T& transport, const ExecuteOptions& options) const {
    DeviceTransport<T, memory_space> carrier(transport, this->options().path);
    if (options.log) {
      options.log(text("heddle::Stages: ", carrier));
      options.log(text("heddle::kernel::gemm: ", impl::blas_of<S>()));
    }
    return carrier;
  }

  /// Passes the arguments of Runner::step() to the stages. Called by Runner.
  template <class... Arguments>
  void begin_step(const Arguments&... arguments) {
    begin();
    if constexpr (impl::StageBeginsSteps<S, Arguments...>)
      for_each([&](Stage, S& stage) { stage.begin_step(arguments...); });
    else
      static_assert(sizeof...(Arguments) == 0,
                    "heddle::Stages: the stages have no begin_step for these arguments");
  }

  /// Returns the stage `number`. @throws contract_error if it is on another rank.
  [[nodiscard]] S& at(Stage number) { return typed(held(number)); }

  /// Calls `visit(number, stage)` for every stage of this rank, in ascending order.
  template <class Visit>
  void for_each(Visit&& visit) {
    for (const impl::HeldStage& each : held()) visit(each.number, typed(*each.stage));
  }

  /// Returns the output of stage `number` of this rank for a microbatch of the last step:
  /// output_size() elements in memory_space, valid until the next step. It is for schedules without
  /// backward actions. @throws contract_error if this rank has not computed the output, or has sent
  /// it on.
  [[nodiscard]] std::span<const scalar_type> output(Stage number, Item item) const {
    const std::span<const std::byte> bytes = output_of(number, item);
    return {reinterpret_cast<const scalar_type*>(bytes.data()), bytes.size() / sizeof(scalar_type)};
  }

  /// Builds the stage of `place` by the function of the constructor, apart from the stages of a
  /// Runner. See profile_layers(). @throws contract_error if the layers are not layers of the
  /// model, or if the samples end before they begin.
  [[nodiscard]] S make(const StagePlace& place) const { return std::move(typed(*make_any(place))); }

  /// Calls `visitor(array)` for every StateArray of this rank's stages. Layers are counted over the
  /// whole model.
  template <class Visitor>
  requires HasState<S>
  void visit_state(Visitor&& visitor) {
    for (const impl::HeldStage& each : held()) {
      each.stage->fence();
      typed(*each.stage).visit_state([&](auto array) {
        if (array.layer != whole_model) array.layer += each.layers.first;
        visitor(array);
      });
    }
  }
  /// Tells the stages that their state was written. All ranks must call it.
  void state_written() requires HasState<S> { note_written(); }

 private:
  /// Returns a function without the type of the stages, which makes one by `call(make, place)`. It
  /// is empty if `make` is empty.
  template <class Make, class Call>
  static impl::MakeStage maker_of(Make make, Call call) {
    if (make == nullptr) return {};
    return [make = std::move(make), call](const StagePlace& place) {
      return std::unique_ptr<impl::AnyStage>(new impl::StageOf<S>(call(make, place)));
    };
  }
  static S& typed(impl::AnyStage& stage) { return static_cast<impl::StageOf<S>&>(stage).stage; }
};

}  // namespace heddle::inline v0

#if HEDDLE_DEFINES_PIPELINE
#include <heddle/pipeline/stages.ipp>
#endif
