// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// Stages: what a Runner drives when a model is made of pipeline stages. Builds the stages of this
/// rank, gives the schedule's buffers their sizes and memory, and turns actions into calls.

#include <algorithm>
#include <array>
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

#include <heddle/collective/all_reduce.hpp>
#include <heddle/collective/combine.hpp>
#include <heddle/comm/device_mesh.hpp>
#include <heddle/comm/device_transport.hpp>
#include <heddle/core/contract.hpp>
#include <heddle/core/text.hpp>
#include <heddle/core/units.hpp>
#include <heddle/execute/await.hpp>
#include <heddle/execute/exchange.hpp>
#include <heddle/execute/runner.hpp>
#include <heddle/pipeline/partition.hpp>
#include <heddle/pipeline/stage.hpp>
#include <heddle/schedule/action_text.hpp>
#include <heddle/schedule/data_parallel.hpp>
#include <heddle/schedule/expand.hpp>
#include <heddle/schedule/generator/ring_all_reduce.hpp>
#include <heddle/schedule/weave.hpp>

namespace heddle::inline v0 {

/// How gradients are summed over the replicas of a stage.
enum class GradientSum : std::uint8_t {
  ring,     ///< expanded in place: a ring all-reduce that is part of the schedule
  library,  ///< one action, MPI's own all-reduce, on the host; the watchdog does not see inside it
};

/// How Stages divides a model and sums its gradients.
struct StagesOptions {
  std::vector<int> layers_per_stage = {};        ///< as equal as can be where empty
  GradientSum gradient_sum = GradientSum::ring;  ///< over the replicas of a stage
  std::string pipe_axis = "pipe";                ///< the mesh axis along which the stages lie
  DevicePath path = DevicePath::automatic;  ///< of messages, where the stages' memory is a device's
};

/// What a training step returns: the sum of the losses of all microbatches of all replicas.
struct StepResult {
  double loss = 0;  ///< as the stages with loss(Item) give it
};

namespace impl {

// What a stage may have. Concepts, and not requirements in place, for the reason that stands beside
// those of the Runner.

/// A stage that takes `Arguments` at the begin of a step.
template <class S, class... Arguments>
concept StageBeginsSteps = requires(S& stage, const Arguments&... arguments) {
  stage.begin_step(arguments...);
};
/// A stage that says its share of the loss.
template <class S>
concept HasLoss = requires(const S& stage) {
  stage.loss(Item{});
};

}  // namespace impl

/// The stages of one model, those of this rank alive. A Model for Runner.
///
/// `make(first, last)` builds the stage that holds the layers [first, last). Arguments of
/// Runner::step are handed to every stage's `begin_step`. A stage with `loss(Item)` contributes to
/// the StepResult. Buffers lie in the stages' memory space; which way messages go from there is
/// told to ExecuteOptions::log when a Runner is made.
template <PipelineStage S>
class Stages {
 public:
  using scalar_type = typename S::scalar_type;    ///< what parameters and activations are made of
  using memory_space = typename S::memory_space;  ///< where they live

  /// So many layers, divided by `options`; nothing is built before a Runner asks.
  Stages(int layers, std::function<S(int first, int last)> make, StagesOptions options = {})
      : m_layers(layers), m_make(std::move(make)), m_options(std::move(options)) {}

  /// Called by Runner: builds this rank's stages and sizes the buffers.
  template <Place P>
  [[nodiscard]] Schedule prepare(Schedule schedule, P& place, const ExecuteOptions& options) {
    m_replicas = nullptr;
    m_microbatches = 0;
    if constexpr (std::same_as<P, DeviceMesh>) {
      schedule = data_parallel(schedule, place.shape(), m_options.pipe_axis);
      m_replicas = replicas(place);
    }
    auto& transport = transport_of(place);
    m_poll = [&transport] {
      if (const std::optional<Abort> abort = transport.aborted())
        throw lost("heddle::Stages, sum of gradients", *abort);
    };
    build(schedule, transport.rank());
    for (const Action& action : schedule.actions())
      if (action.kind == Kind::F) m_microbatches = std::max(m_microbatches, action.item.value + 1);
    schedule = sized(schedule, transport, options);
    if (m_options.gradient_sum == GradientSum::ring)
      schedule = expand(schedule, schedule::RingAllReduce{});
    return schedule;
  }

  /// Called by Runner: weights and gradients are the stages' own.
  [[nodiscard]] std::byte* memory(const Schedule& schedule, BufferId id) {
    const Buffer& buffer = schedule[id];
    const std::string& label = schedule[buffer.label];
    if (label == role::weights) return bytes_of(at(buffer.stage).parameters());
    if (label == role::gradients) return bytes_of(at(buffer.stage).gradients());
    return nullptr;
  }

  /// Called by Runner: every other buffer is a View, without initial values.
  [[nodiscard]] std::shared_ptr<std::byte> allocate(Bytes bytes) const {
    const Kokkos::View<std::byte*, memory_space> view(
        Kokkos::view_alloc(Kokkos::WithoutInitializing, "heddle::pipeline::buffer"), bytes);
    return {view.data(), [view](std::byte*) {}};
  }

  /// Called by Runner: messages go from and to the stages' memory space.
  template <Transport T>
  [[nodiscard]] auto carrier(T& transport, const ExecuteOptions& options) const {
    DeviceTransport<T, memory_space> carrier(transport, m_options.path);
    if (options.log) options.log(text("heddle::Stages: ", carrier));
    return carrier;
  }

  /// Called by Runner: hands the arguments of its step() to the stages.
  template <class... Arguments>
  void begin_step(const Arguments&... arguments) {
    if constexpr (impl::StageBeginsSteps<S, Arguments...>)
      for (Entry& entry : m_stages) entry.stage->begin_step(arguments...);
    else
      static_assert(sizeof...(Arguments) == 0,
                    "heddle::Stages: the stages have no begin_step for these arguments");
  }

  /// Called by Runner: sums the losses of all ranks. All of them must call it.
  template <Transport T>
  [[nodiscard]] StepResult end_step(T& transport, const ExecuteOptions& options) {
    double mine = 0;
    if constexpr (impl::HasLoss<S>)
      for (const Entry& entry : m_stages)
        for (std::uint32_t m = 0; m < m_microbatches; ++m) mine += entry.stage->loss(Item{m});
    StepResult result;
    for (const auto& each : all_gather_values<double>(transport, std::span(&mine, 1), options))
      result.loss += each[0];
    return result;
  }

  /// Performs one action. The positions of the uses are those that weave() states.
  void operator()(const Task& task) {
    const Kind kind = task.kind();
    if (kind == Kind::combine) return combine_in<memory_space>(task);
    if (kind == Kind::group) return sum_group(task);
    expects(kind <= Kind::B || kind == Kind::update, [&] {
      return Complaint{"heddle::Stages", "stages do not know this kind of action",
                       action_text(task.schedule(), task.id())};
    });
    S& stage = at(task.stage());
    if (kind == Kind::update) {
      stage.update();
      return stage.fence();
    }
    const auto uses = task.uses();
    std::size_t next = 0;
    const auto take = [&]() -> scalar_type* {
      return reinterpret_cast<scalar_type*>(uses[next++].data);
    };
    const auto take_if = [&](bool has) { return has ? take() : nullptr; };
    const Item item = task.item();
    const scalar_type* const input = take_if(stage.input_size() > 0);
    if (kind == Kind::F) {
      scalar_type* const output = take_if(stage.output_size() > 0);
      stage.forward(item, input, output, take());
      return stage.fence();
    }
    const scalar_type* const saved = take();
    const scalar_type* const output_grad = take_if(stage.output_size() > 0);
    scalar_type* delta = m_delta.data();
    if (kind != Kind::W) {
      take();  // the weights
      scalar_type* const input_grad = take_if(stage.input_size() > 0);
      if (kind == Kind::I) delta = take();
      stage.backward_input(item, input, saved, output_grad, input_grad, delta);
    } else {
      delta = take();
    }
    if (kind != Kind::I) {
      if (uses.back().access == Access::write) stage.zero_gradients();
      stage.backward_weight(item, input, saved, output_grad, delta);
    }
    stage.fence();
  }

  /// The stage `number`. @throws contract_error where it is on another rank.
  [[nodiscard]] S& at(Stage number) {
    for (Entry& entry : m_stages)
      if (entry.number == number) return *entry.stage;
    throw contract_error(
        {"heddle::Stages::at", "this rank does not hold the stage", text("stage ", number)});
  }

  /// Calls `visit(number, stage)` for every stage of this rank, in ascending order.
  template <class Visit>
  void for_each(Visit&& visit) {
    for (Entry& entry : m_stages) visit(entry.number, *entry.stage);
  }

  /// Number of layers of the whole model.
  [[nodiscard]] int layers() const noexcept { return m_layers; }

 private:
  using Elements = Kokkos::View<scalar_type*, memory_space>;

  static constexpr std::array<std::string_view, 8> roles = {
      role::input,      role::output, role::saved,   role::output_grad,
      role::input_grad, role::delta,  role::weights, role::gradients};

  struct Entry {
    Stage number;
    LayerRange layers;
    std::unique_ptr<S> stage;
  };
  struct Sizes {
    std::uint32_t stage;
    std::uint64_t input, output, saved, delta, parameters;  ///< elements
  };

  static std::byte* bytes_of(scalar_type* data) { return reinterpret_cast<std::byte*>(data); }

  /// The line of the mesh over which MPI sums gradients; null where there are no replicas.
  const Communicator* replicas(DeviceMesh& mesh) const {
    const Communicator* line = nullptr;
    for (const MeshAxis& axis : mesh.shape().axes()) {
      if (axis.name == m_options.pipe_axis || axis.size == 1) continue;
      if (line != nullptr && m_options.gradient_sum == GradientSum::library)
        throw infeasible({"heddle::Stages", "replicas lie along several axes", text(mesh.shape()),
                          "use GradientSum::ring, or one axis beside the pipe"});
      line = &mesh[axis.name];
    }
    return line;
  }

  void build(const Schedule& schedule, Rank rank) {
    int count = 0;
    for (const Buffer& buffer : schedule.buffers())
      count = std::max(count, static_cast<int>(+buffer.stage) + 1);
    const auto ranges = partition_layers(m_layers, count, m_options.layers_per_stage);
    // A stage that has the same layers as before goes on with what it has learned.
    std::vector<Entry> before = std::exchange(m_stages, {});
    std::size_t delta = 0;
    for (std::size_t s = 0; s < ranges.size(); ++s) {
      const bool here = std::any_of(schedule.buffers().begin(), schedule.buffers().end(),
                                    [&](const Buffer& buffer) {
                                      return buffer.rank == rank && buffer.stage == Stage{s} &&
                                             schedule[buffer.label] == role::weights;
                                    });
      if (!here) continue;
      const auto same = std::find_if(before.begin(), before.end(), [&](const Entry& entry) {
        return entry.stage && entry.layers == ranges[s];
      });
      m_stages.push_back({Stage{s}, ranges[s],
                          same != before.end()
                              ? std::move(same->stage)
                              : std::make_unique<S>(m_make(ranges[s].first, ranges[s].last))});
      delta = std::max(delta, m_stages.back().stage->delta_size());
    }
    m_delta =
        Elements(Kokkos::view_alloc(Kokkos::WithoutInitializing, "heddle::pipeline::delta"), delta);
  }

  /// The schedule with the sizes of all stages, which every rank tells the others.
  template <Transport T>
  [[nodiscard]] Schedule sized(const Schedule& schedule, T& transport,
                               const ExecuteOptions& options) const {
    std::vector<Sizes> mine;
    for (const auto& [number, layers, stage] : m_stages)
      mine.push_back({number.value, stage->input_size(), stage->output_size(), stage->saved_size(),
                      stage->delta_size(), stage->parameter_count()});
    std::vector<Sizes> sizes;
    for (const auto& theirs : all_gather_values<Sizes>(transport, mine, options)) {
      for (const Sizes& each : theirs) {
        if (sizes.size() <= each.stage) sizes.resize(each.stage + 1);
        sizes[each.stage] = each;
      }
    }
    return schedule.with_sizes([&](Buffer& buffer) {
      const std::string& label = schedule[buffer.label];
      expects(std::find(roles.begin(), roles.end(), label) != roles.end(), [&] {
        return Complaint{"heddle::Stages", "stages have no storage of this role",
                         text("'", label, "' of stage ", buffer.stage)};
      });
      const Sizes& stage = sizes[+buffer.stage];
      const std::uint64_t elements = label == role::input || label == role::input_grad ? stage.input
                                     : label == role::output || label == role::output_grad
                                         ? stage.output
                                     : label == role::saved ? stage.saved
                                     : label == role::delta ? stage.delta
                                                            : stage.parameters;
      buffer.type = scalar_of<scalar_type>;
      buffer.bytes = elements * sizeof(scalar_type) * buffer.parts;
    });
  }

  void sum_group(const Task& task) {
    expects(m_replicas != nullptr, [] {
      return Complaint{"heddle::Stages",
                       "a group action needs a DeviceMesh to run on",
                       {},
                       "give Runner a DeviceMesh, or use GradientSum::ring"};
    });
    const BoundUse& use = task.uses()[0];
    const Kokkos::View<scalar_type*, memory_space, Kokkos::MemoryTraits<Kokkos::Unmanaged>> sum(
        reinterpret_cast<scalar_type*>(use.data), use.bytes / sizeof(scalar_type));
    all_reduce(typename memory_space::execution_space{}, sum, Sum{}, *m_replicas, m_poll);
  }

  int m_layers;
  std::function<S(int, int)> m_make;
  StagesOptions m_options;
  std::vector<Entry> m_stages;
  std::uint32_t m_microbatches = 0;
  Elements m_delta;  ///< of a B, between its two halves
  const Communicator* m_replicas = nullptr;
  std::function<void()> m_poll;  ///< throws where another rank has failed
};

}  // namespace heddle::inline v0
