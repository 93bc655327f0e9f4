// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// StagePlace: what Stages tells the function that makes a stage.

#include <heddle/core/index.hpp>
#include <heddle/layout/layer_range.hpp>
#include <heddle/schedule/order/stage_shares.hpp>

namespace heddle::inline v0 {

class PlannedMesh;

/// The part of the model and of a microbatch that a stage computes on this rank.
struct StagePlace {
  Stage stage = {};        ///< the number of the stage
  LayerRange layers = {};  ///< its layers
  /// Its samples of the largest microbatch, if the schedule has StageShares, runs on a PlannedMesh
  /// or follows Stages::begin_plan(). Otherwise it computes whole microbatches, and the range is
  /// empty. If the ranks of a group divide layers, these are the samples that this rank has between
  /// them.
  SampleRange samples = {};
  /// The mesh of the plan, or null if the model runs on another place. A stage may refer to its
  /// lines(), which last as long as the stage.
  const PlannedMesh* mesh = nullptr;

  friend bool operator==(const StagePlace&, const StagePlace&) = default;
};

}  // namespace heddle::inline v0
