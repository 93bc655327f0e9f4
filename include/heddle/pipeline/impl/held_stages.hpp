// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// HeldStages: the stages of a model on this rank, their weights, and what becomes of both when the
/// layers are divided in another way.

#include <algorithm>
#include <cstddef>
#include <functional>
#include <memory>
#include <span>
#include <utility>
#include <vector>

#include <Kokkos_Core.hpp>

#include <heddle/comm/planned_mesh.hpp>
#include <heddle/core/error.hpp>
#include <heddle/core/text.hpp>
#include <heddle/execute/exchange.hpp>
#include <heddle/execute/execute_options.hpp>
#include <heddle/execute/program.hpp>
#include <heddle/execute/transport.hpp>
#include <heddle/pipeline/impl/held_state.hpp>
#include <heddle/pipeline/impl/kept_state.hpp>
#include <heddle/pipeline/impl/move_state.hpp>
#include <heddle/pipeline/impl/stage_calls.hpp>
#include <heddle/pipeline/impl/stage_sizes.hpp>
#include <heddle/pipeline/stage.hpp>
#include <heddle/pipeline/stage_place.hpp>
#include <heddle/pipeline/state.hpp>
#include <heddle/plan/migration.hpp>
#include <heddle/schedule/schedule.hpp>
#include <heddle/schedule/stage_storage.hpp>

namespace heddle::inline v0::impl {

/// Copies `count` elements within a memory space, and waits for it.
template <class Memory, class T>
void copy_elements(T* to, const T* from, std::size_t count) {
  using From = Kokkos::View<const T*, Memory, Kokkos::MemoryUnmanaged>;
  using To = Kokkos::View<T*, Memory, Kokkos::MemoryUnmanaged>;
  const typename Memory::execution_space space;
  Kokkos::deep_copy(space, To(to, count), From(from, count));
  space.fence("heddle::pipeline::copy");
}

/// The stages of a model that this rank holds.
template <PipelineStage S>
class HeldStages {
 public:
  using scalar_type = typename S::scalar_type;
  using memory_space = typename S::memory_space;

  /// Builds the stages of this rank by `make(place)`, from the division `layers` of the model into
  /// stages. `samples_at(stage)` returns their samples of a microbatch, and `mesh` is the place if
  /// it has a plan. A stage that has the same layers, samples and lines as before goes on with what
  /// it has learned, and the state of the others comes from the ranks that held their layers.
  /// @throws contract_error on every rank if the state cannot come, if a new stage does not name
  ///         all of its parameters, or if it gives one name to two arrays; then the present stages
  ///         stay.
  template <Transport T, class SamplesAt>
  void build(const Schedule& schedule, std::span<const LayerRange> layers,
             const std::function<S(const StagePlace&)>& make, SamplesAt&& samples_at,
             const PlannedMesh* mesh, T& transport, const ExecuteOptions& options) {
    const std::shared_ptr<const PlannedLines> lines = mesh != nullptr ? mesh->lines() : nullptr;
    std::vector<Entry> next;
    std::vector<Entry*> same;  // by entry of `next`: the present stage, or null
    for (std::size_t s = 0; s < layers.size(); ++s) {
      if (!holds(schedule, transport.rank(), Stage{s})) continue;
      const StagePlace place{Stage{s}, layers[s], samples_at(Stage{s}), mesh};
      const auto found = std::find_if(m_stages.begin(), m_stages.end(), [&](Entry& entry) {
        return entry.layers == layers[s] && entry.samples == place.samples &&
               entry.lines == lines && std::find(same.begin(), same.end(), &entry) == same.end();
      });
      same.push_back(found == m_stages.end() ? nullptr : &*found);
      next.push_back({Stage{s},
                      layers[s],
                      lines,
                      same.back() == nullptr ? std::make_unique<S>(make(place)) : nullptr,
                      {},
                      place.samples});
    }
    keep_state(next, transport, options);
    for (std::size_t e = 0; e < next.size(); ++e) {
      if (same[e] == nullptr) continue;
      next[e].stage = std::move(same[e]->stage);
      next[e].versions = std::move(same[e]->versions);
    }
    m_stages = std::move(next);
  }

  /// Returns the stage `number`. @throws contract_error if it is on another rank.
  [[nodiscard]] S& at(Stage number) { return *entry(number).stage; }

  /// Calls `visit(number, stage)` for every stage, in ascending order.
  template <class Visit>
  void for_each(Visit&& visit) const {
    for (const Entry& entry : m_stages) visit(entry.number, *entry.stage);
  }

  /// Returns the sizes of the stages.
  [[nodiscard]] std::vector<StageElements> sizes() const {
    std::vector<StageElements> sizes;
    for_each([&](Stage number, S& stage) {
      sizes.push_back({number.value, stage.input_size(), stage.output_size(), stage.saved_size(),
                       stage.delta_size(), stage.parameter_count(), added_gradients(stage).size()});
    });
    return sizes;
  }

  /// Returns the memory of a stage's weights. It belongs to the stage, or to this object if the
  /// buffer has room for several versions; the first of these holds the present version.
  [[nodiscard]] scalar_type* weights_of(const Buffer& buffer) {
    Entry& held = entry(buffer.stage);
    S& stage = *held.stage;
    const std::size_t count = stage.parameter_count();
    if (buffer.bytes <= count * sizeof(scalar_type)) return stage.parameters();
    held.versions =
        Elements(Kokkos::view_alloc(Kokkos::WithoutInitializing, "heddle::pipeline::versions"),
                 buffer.bytes / sizeof(scalar_type));
    copy_elements<memory_space, scalar_type>(held.versions.data(), stage.parameters(), count);
    use_parameters(stage, held.versions.data());
    return held.versions.data();
  }

  /// Performs an update of stage `number`. Its uses are [gradients, weights], of all parameters or
  /// of a part of them, or [gradients, old version, new version].
  void update(Stage number, std::span<const BoundUse> uses) {
    S& stage = at(number);
    auto* const weights = reinterpret_cast<scalar_type*>(uses.back().data);
    if (uses.size() > 2)
      copy_elements<memory_space, scalar_type>(
          weights, reinterpret_cast<const scalar_type*>(uses[1].data), stage.parameter_count());
    const std::size_t count = uses.back().bytes / sizeof(scalar_type);
    if (uses.size() == 2 && count < stage.parameter_count()) {
      if constexpr (UpdatesParts<S>)
        stage.update(static_cast<std::size_t>(weights - stage.parameters()), count);
    } else {
      use_parameters(stage, weights);
      stage.update();
    }
    stage.fence();
    m_trained = true;
  }

  /// Calls `visitor(array)` for every StateArray. Layers are counted over the whole model.
  template <class Visitor>
  void visit_state(Visitor&& visitor) requires HasState<S> {
    for (Entry& entry : m_stages) {
      entry.stage->fence();
      entry.stage->visit_state([&](auto array) {
        array.layer += entry.layers.first;
        visitor(array);
      });
    }
  }
  /// Tells the stages that their state was written.
  void state_written() requires HasState<S> {
    for (Entry& entry : m_stages) impl::state_written(*entry.stage);
    m_trained = true;
  }

  /// Returns what all ranks sent when the state last went to another division of the layers.
  [[nodiscard]] const plan::Moved& migrated() const noexcept { return m_migrated; }

 private:
  using Elements = Kokkos::View<scalar_type*, memory_space>;

  struct Entry {
    Stage number;
    LayerRange layers;
    std::shared_ptr<const PlannedLines> lines;  ///< to which the stage may refer
    std::unique_ptr<S> stage;
    Elements versions = {};    ///< versions of its parameters, if there are several
    SampleRange samples = {};  ///< its samples of a microbatch, if ranks divide it
  };

  /// Returns true if the rank has the weights of a stage.
  [[nodiscard]] static bool holds(const Schedule& schedule, Rank rank, Stage stage) {
    return std::ranges::any_of(schedule.buffers(), [&](const Buffer& buffer) {
      return buffer.rank == rank && buffer.stage == stage &&
             schedule[buffer.label] == role::weights;
    });
  }

  [[nodiscard]] Entry& entry(Stage number) {
    for (Entry& entry : m_stages)
      if (entry.number == number) return entry;
    throw contract_error(
        {"heddle::Stages::at", "this rank does not hold the stage", text("stage ", number)});
  }

  /// Gives the new stages among `next` the state that the present ones have.
  template <Transport T>
  void keep_state(std::vector<Entry>& next, T& transport, const ExecuteOptions& options) {
    KeptState mine{.held = !m_stages.empty(), .trained = m_trained};
    std::vector<HeldArray> after;
    for (Entry& entry : next) {
      if (!entry.stage) continue;
      mine.made = true;
      if constexpr (HasState<S>) {
        const auto held = held_arrays_of_stage(*entry.stage, entry.layers);
        mine.note(
            entry.number,
            bytes_without_name(held, entry.stage->parameters(), entry.stage->parameter_count()),
            entry.stage->parameter_count() * sizeof(scalar_type));
        after.insert(after.end(), held.begin(), held.end());
      }
    }
    mine.twice = named_twice(unpacked(packed(after))) != nullptr;
    const auto ranks = all_gather_values<KeptState>(transport, std::span(&mine, 1), options);
    if constexpr (HasState<S>)
      if (std::ranges::any_of(ranks, [](const auto& rank) { return rank[0].twice; }))
        (void)ArrayNumbers("heddle::Stages").add(all_gather(transport, packed(after), options));
    const bool carries = must_carry_state<HasState<S>>(ranks);
    if constexpr (HasState<S>) {
      if (!carries) return;
      const auto before = held_arrays(*this, "heddle::Stages");
      m_migrated = carry_state(transport, options, before, after, "heddle::Stages");
      for (Entry& entry : next)
        if (entry.stage) impl::state_written(*entry.stage);
    }
  }

  std::vector<Entry> m_stages;
  bool m_trained = false;  ///< true after an update, or after the state was restored
  plan::Moved m_migrated;
};

}  // namespace heddle::inline v0::impl
