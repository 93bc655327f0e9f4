// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// HeldStages: the stages of a model on this rank, their weights, and what becomes of both when the
/// layers are divided in another way.

#include <algorithm>
#include <cstddef>
#include <memory>
#include <span>
#include <utility>
#include <vector>

#include <heddle/comm/planned_mesh.hpp>
#include <heddle/core/error.hpp>
#include <heddle/core/internal/function_ref.hpp>
#include <heddle/core/text.hpp>
#include <heddle/core/units.hpp>
#include <heddle/execute/exchange.hpp>
#include <heddle/execute/execute_options.hpp>
#include <heddle/execute/task.hpp>
#include <heddle/execute/transport_ref.hpp>
#include <heddle/pipeline/impl/any_stage.hpp>
#include <heddle/pipeline/impl/held_state.hpp>
#include <heddle/pipeline/impl/kept_state.hpp>
#include <heddle/pipeline/impl/move_state.hpp>
#include <heddle/pipeline/impl/throw_together.hpp>
#include <heddle/pipeline/stage_place.hpp>
#include <heddle/plan/migration.hpp>
#include <heddle/schedule/schedule.hpp>
#include <heddle/schedule/stage_storage.hpp>

namespace heddle::inline v0::impl {

/// The stages of a model that this rank holds.
class HeldStages {
 public:
  explicit HeldStages(const StageTraits& traits) : m_traits(traits) {}

  /// Builds the stages of this rank by `make(place)`, from the division `layers` of the model into
  /// stages. `samples_at(stage)` returns their samples of a microbatch, and `mesh` is the place if
  /// it has a plan. A stage that has the same layers, samples and lines as before goes on with what
  /// it has learned, and the state of the others comes from the ranks that held their layers.
  /// @throws contract_error on every rank if the state cannot come, if a new stage does not name
  ///         all of its parameters, or if it gives one name to two arrays; then the present stages
  ///         stay.
  void build(const Schedule& schedule, std::span<const LayerRange> layers, const MakeStage& make,
             FunctionRef<SampleRange(Stage)> samples_at, const PlannedMesh* mesh,
             const TransportRef& transport, const ExecuteOptions& options) {
    const std::shared_ptr<const PlannedLines> lines = mesh != nullptr ? mesh->lines() : nullptr;
    std::vector<HeldStage> next;
    std::vector<HeldStage*> same;  // by stage of `next`: the present stage, or null
    for (std::size_t s = 0; s < layers.size(); ++s) {
      if (!holds(schedule, transport.rank(), Stage{s})) continue;
      const StagePlace place{Stage{s}, layers[s], samples_at(Stage{s}), mesh};
      const auto found = std::find_if(m_stages.begin(), m_stages.end(), [&](HeldStage& held) {
        return held.layers == layers[s] && held.samples == place.samples && held.lines == lines &&
               std::find(same.begin(), same.end(), &held) == same.end();
      });
      same.push_back(found == m_stages.end() ? nullptr : &*found);
      HeldStage& held = next.emplace_back(Stage{s}, layers[s], lines);
      held.samples = place.samples;
      if (same.back() == nullptr) held.stage = make(place);
    }
    keep_state(next, transport, options);
    for (std::size_t e = 0; e < next.size(); ++e) {
      if (same[e] != nullptr) {
        next[e].stage = std::move(same[e]->stage);
        next[e].versions = std::move(same[e]->versions);
      }
      next[e].sizes = next[e].stage->sizes(next[e].number);
    }
    m_stages = std::move(next);
  }

  /// Returns the properties of the stages' type.
  [[nodiscard]] const StageTraits& traits() const noexcept { return m_traits; }
  /// Returns the stages, in ascending order.
  [[nodiscard]] std::span<const HeldStage> all() const { return m_stages; }
  /// Returns the stage `number`. @throws contract_error if it is on another rank.
  [[nodiscard]] HeldStage& held(Stage number) {
    for (HeldStage& held : m_stages)
      if (held.number == number) return held;
    throw contract_error(
        {"heddle::Stages::at", "this rank does not hold the stage", text("stage ", number)});
  }

  /// Returns the memory of a buffer of weights. It is memory of this object if the buffer has room
  /// for several versions; the first of these holds the present version.
  [[nodiscard]] std::byte* weights_of(const Buffer& buffer) {
    HeldStage& held = this->held(buffer.stage);
    const Bytes bytes = bytes_of(held);
    if (buffer.bytes <= bytes) return held.stage->parameters();
    held.versions = m_traits.space->allocate("heddle::pipeline::versions", buffer.bytes);
    m_traits.space->copy(held.stage->parameters(), held.versions.get(), bytes);
    held.stage->use_parameters(held.versions.get());
    return held.versions.get();
  }

  /// Performs an update of stage `number`: of all parameters or of a part of them in place, or from
  /// one version of the weights to another.
  void update(Stage number, std::span<const BoundUse> uses) {
    HeldStage& held = this->held(number);
    AnyStage& stage = *held.stage;
    const BoundUse* old = nullptr;
    const BoundUse* updated = nullptr;
    for (const BoundUse& use : uses)
      if (use.role == Role::weights) (use.access == Access::read ? old : updated) = &use;
    const BoundUse& weights = *updated;
    if (old != nullptr) m_traits.space->copy(old->data, weights.data, bytes_of(held));
    if (old == nullptr && weights.bytes < bytes_of(held)) {
      const Bytes element = size_of(m_traits.type);
      stage.update(static_cast<std::size_t>(weights.data - stage.parameters()) / element,
                   weights.bytes / element);
    } else {
      stage.use_parameters(weights.data);
      stage.update();
    }
    stage.fence();
    m_trained = true;
  }

  /// Tells the stages that their state was written.
  void state_written() {
    for (HeldStage& held : m_stages) held.stage->state_written();
    m_trained = true;
  }

  /// Returns what all ranks sent when the state last went to another division of the layers.
  [[nodiscard]] const plan::Moved& migrated() const noexcept { return m_migrated; }

 private:
  /// Returns true if the rank has the weights of a stage.
  [[nodiscard]] static bool holds(const Schedule& schedule, Rank rank, Stage stage) {
    return std::ranges::any_of(schedule.buffers(), [&](const Buffer& buffer) {
      return buffer.rank == rank && buffer.stage == stage &&
             schedule[buffer.label] == role::weights;
    });
  }

  /// Returns the bytes of one version of the parameters.
  [[nodiscard]] Bytes bytes_of(const HeldStage& held) const {
    return held.sizes.parameters * size_of(m_traits.type);
  }

  /// Gives the new stages among `next` the state that the present ones have.
  void keep_state(std::vector<HeldStage>& next, const TransportRef& transport,
                  const ExecuteOptions& options) {
    KeptState mine{.held = !m_stages.empty(), .trained = m_trained};
    std::vector<HeldArray> after;
    throw_together(transport, options, "heddle::Stages", [&] {
      for (HeldStage& held : next) {
        if (!held.stage) continue;
        mine.made = true;
        if (!m_traits.has_state) continue;
        const std::vector<HeldArray> arrays = arrays_of_stage(*held.stage, held.layers);
        const Bytes bytes = held.stage->sizes(held.number).parameters * size_of(m_traits.type);
        mine.note(held.number, bytes_without_name(arrays, held.stage->parameters(), bytes), bytes);
        after.insert(after.end(), arrays.begin(), arrays.end());
      }
      check_arrays(after, "heddle::Stages");
    });
    const auto ranks = all_gather<KeptState>(transport, std::span(&mine, 1), options);
    if (!must_carry_state(ranks, m_traits.has_state)) return;
    std::vector<HeldArray> before;
    for (HeldStage& held : m_stages)
      for (HeldArray& each : arrays_of_stage(*held.stage, held.layers))
        before.push_back(std::move(each));
    m_migrated = carry_state(transport, options, before, after, "heddle::Stages");
    for (HeldStage& held : next)
      if (held.stage) held.stage->state_written();
  }

  StageTraits m_traits;
  std::vector<HeldStage> m_stages;
  bool m_trained = false;  ///< true after an update, or after the state was restored
  plan::Moved m_migrated;
};

}  // namespace heddle::inline v0::impl
