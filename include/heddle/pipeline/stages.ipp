// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// Definitions of stages.hpp.

#include <cstddef>
#include <memory>
#include <span>
#include <utility>
#include <vector>

#include <heddle/core/contract.hpp>
#include <heddle/core/error.hpp>
#include <heddle/core/linkage.hpp>
#include <heddle/core/text.hpp>
#include <heddle/core/units.hpp>
#include <heddle/execute/exchange.hpp>
#include <heddle/pipeline/impl/held_stages.hpp>
#include <heddle/pipeline/impl/stage_calls.hpp>
#include <heddle/pipeline/impl/stage_placement.hpp>
#include <heddle/pipeline/stages.hpp>
#include <heddle/plan/migration.hpp>
#include <heddle/schedule/stage_storage.hpp>

namespace heddle::inline v0 {

/// The three parts of a model of stages.
struct StagesBase::State {
  impl::StagePlacement placement;  ///< prepares runs
  impl::HeldStages held;           ///< the stages of this rank and their state
  impl::StageCalls calls;          ///< performs actions
};

HEDDLE_FULL_INLINE StagesBase::StagesBase(int layers, impl::MakeStage make, StagesOptions options,
                                          const impl::StageTraits& traits)
    : m_state(new State{{layers, std::move(make), std::move(options), traits},
                        impl::HeldStages(traits),
                        impl::StageCalls(traits)}) {}
HEDDLE_FULL_INLINE StagesBase::StagesBase(StagesBase&&) noexcept = default;
HEDDLE_FULL_INLINE StagesBase& StagesBase::operator=(StagesBase&&) noexcept = default;
HEDDLE_FULL_INLINE StagesBase::~StagesBase() = default;

HEDDLE_FULL_INLINE Schedule StagesBase::prepare_on(Schedule schedule, const impl::StagesMesh& mesh,
                                                   const TransportRef& transport,
                                                   const ExecuteOptions& options) {
  impl::PlacedStages placed =
      m_state->placement.prepare(std::move(schedule), mesh, transport, options, m_state->held);
  m_state->calls.begin_run(placed.samples, std::move(placed.sum));
  return std::move(placed.schedule);
}

HEDDLE_FULL_INLINE std::byte* StagesBase::memory(const Schedule& schedule, BufferId id) {
  const Buffer& buffer = schedule[id];
  switch (impl::role_of(schedule[buffer.label])) {
    case Role::weights: return m_state->held.weights_of(buffer);
    case Role::gradients: return held(buffer.stage).added_gradients();
    default: return nullptr;
  }
}

HEDDLE_FULL_INLINE std::shared_ptr<std::byte> StagesBase::allocate(Bytes bytes) const {
  const impl::StageSpace& space = *m_state->held.traits().space;
  std::shared_ptr<std::byte> block =
      options().allocate ? options().allocate(bytes)
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
  m_state->calls.perform(task, m_state->held);
}

HEDDLE_FULL_INLINE void StagesBase::divide(std::vector<int> layers_per_stage) {
  m_state->placement.divide(std::move(layers_per_stage));
}

HEDDLE_FULL_INLINE void StagesBase::begin_plan(const Plan& plan) {
  m_state->placement.begin_plan(plan);
}

HEDDLE_FULL_INLINE const plan::Moved& StagesBase::migrated() const noexcept {
  return m_state->held.migrated();
}

HEDDLE_FULL_INLINE int StagesBase::layers() const noexcept { return m_state->placement.layers(); }

HEDDLE_FULL_INLINE std::span<const impl::HeldStage> StagesBase::held() const {
  return m_state->held.all();
}

HEDDLE_FULL_INLINE impl::AnyStage& StagesBase::held(Stage number) {
  return *m_state->held.held(number).stage;
}

HEDDLE_FULL_INLINE std::unique_ptr<impl::AnyStage> StagesBase::make_any(
    const StagePlace& place) const {
  return m_state->placement.make(place);
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
  return m_state->placement.options();
}

HEDDLE_FULL_INLINE void StagesBase::begin() { m_state->calls.begin_step(); }

HEDDLE_FULL_INLINE void StagesBase::note_written() { m_state->held.state_written(); }

}  // namespace heddle::inline v0
