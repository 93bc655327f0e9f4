// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// StagePlacement: divides a model into stages for a schedule and a place. It is the part of Stages
/// that prepares a run.

#include <cstddef>
#include <memory>
#include <optional>
#include <vector>

#include <heddle/comm/communicator.hpp>
#include <heddle/comm/device_mesh.hpp>
#include <heddle/comm/planned_mesh.hpp>
#include <heddle/core/linkage.hpp>
#include <heddle/execute/execute_options.hpp>
#include <heddle/execute/transport_ref.hpp>
#include <heddle/pipeline/impl/any_stage.hpp>
#include <heddle/pipeline/impl/held_stages.hpp>
#include <heddle/pipeline/impl/replica_sum.hpp>
#include <heddle/pipeline/impl/stages_mesh.hpp>
#include <heddle/pipeline/stage_place.hpp>
#include <heddle/pipeline/stages_options.hpp>
#include <heddle/schedule/plan.hpp>
#include <heddle/schedule/schedule.hpp>

namespace heddle::inline v0::impl {

/// The result of StagePlacement::prepare().
struct PlacedStages {
  Schedule schedule;        ///< with sizes and sums of gradients, the same on every rank
  std::size_t samples = 0;  ///< the samples of a microbatch that nobody divides, if known
  ReplicaSum sum = {};      ///< the sum of gradients by MPI
};

/// The division of a model of layers into stages, and the function that makes a stage.
class StagePlacement {
 public:
  /// @throws contract_error as the constructor of Stages.
  StagePlacement(int layers, MakeStage make, StagesOptions options, const StageTraits& traits);

  /// Returns `schedule` as the stages need it on this place. Builds the stages of this rank in
  /// `held`, which goes on with the state that it has; see HeldStages::build().
  [[nodiscard]] PlacedStages prepare(Schedule schedule, const StagesMesh& mesh,
                                     const TransportRef& transport, const ExecuteOptions& options,
                                     HeldStages& held) const;

  /// Divides the layers in another way, as Stages::divide() does.
  void divide(std::vector<int> layers_per_stage);
  /// Follows a plan, as Stages::begin_plan() does.
  void begin_plan(const Plan& plan);

  /// Makes the stage of `place`, as Stages::make() does.
  [[nodiscard]] std::unique_ptr<AnyStage> make(const StagePlace& place) const;
  [[nodiscard]] int layers() const noexcept { return m_layers; }
  [[nodiscard]] const StagesOptions& options() const noexcept { return m_options; }

 private:
  /// Returns the ranks over which MPI sums gradients: those that differ on the axes of replicas.
  /// Null if there are no replicas, or if the sum is part of the schedule.
  [[nodiscard]] const Communicator* replicas_on(DeviceMesh& mesh) const;

  int m_layers;
  MakeStage m_make;
  StagesOptions m_options;
  StageTraits m_traits;
  std::optional<Plan> m_plan = {};  ///< the plan of begin_plan()
};

}  // namespace heddle::inline v0::impl

#if HEDDLE_DEFINES_PIPELINE
#include <heddle/pipeline/impl/stage_placement.ipp>
#endif
