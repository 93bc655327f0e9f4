// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// StagesOptions: how Stages divides a model, sums its gradients and allocates its buffers.

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include <heddle/comm/device_path.hpp>
#include <heddle/core/units.hpp>
#include <heddle/schedule/schedule.hpp>

namespace heddle::inline v0 {

/// How gradients are summed over the replicas of a stage.
enum class GradientSum : std::uint8_t {
  ring,     ///< a ring all-reduce, whose moves are part of the schedule
  library,  ///< one action that calls MPI's all-reduce on the host; the watchdog cannot end the
            ///< call
  sharded,  ///< the replicas divide the update, see shard_updates(); stages need `update(first, n)`
  stages,   ///< the stages sum their own gradients before they update, as ParameterShards does,
            ///< while the plan of a PlannedMesh has a sharding; otherwise like ring
};

/// The options of Stages: how the model is divided and how gradients are summed.
struct StagesOptions {
  /// Empty: as equal as possible. On a PlannedMesh, the plan has the layers of each stage.
  std::vector<int> layers_per_stage = {};
  GradientSum gradient_sum = GradientSum::ring;  ///< how gradients are summed over replicas
  bool eager_sum = false;                        ///< sum early, see eager_sums()
  std::string pipe_axis = "pipe";                ///< the mesh axis along which the stages lie
  /// The axes along which ranks hold parts of a stage instead of replicas. Gradients are not summed
  /// along them. The stages themselves communicate along them, for example with a TensorLine. They
  /// are axes of a DeviceMesh, and a Runner on one rejects other names; for a PlannedMesh see
  /// GradientSum::stages.
  std::vector<std::string> shard_axes = {};
  DevicePath path = DevicePath::automatic;  ///< how messages leave a device's memory
  /// A pass that is applied to the complete schedule, which has all sizes and sums of gradients. An
  /// example is cast_at_cut() between replicas. It must be the same on every rank. If empty, no
  /// pass is applied.
  std::function<Schedule(const Schedule&)> pass = {};
  /// Allocates a buffer of the schedule, such as what a stage saves for its backward pass, in the
  /// memory space of the stages. With a memory::Limit in front of memory::message_memory(), a model
  /// that needs more throws out_of_memory when its Runner is constructed. The memory must suit
  /// messages; if this is empty, buffers are allocated from memory::message_memory(). Memory that
  /// only one action uses is not among the buffers. It must not return a null pointer.
  std::function<std::shared_ptr<std::byte>(Bytes)> allocate = {};
};

}  // namespace heddle::inline v0
