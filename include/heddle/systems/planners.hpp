// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// systems::planners(): the planners of the literature, for plan::search().

#include <vector>

#include <heddle/core/linkage.hpp>
#include <heddle/plan/planner/search.hpp>

namespace heddle::inline v0::systems {

/// Returns the planners of DAPPLE, PipeDream, Metis, HGTrainer, Holmes and Frontier 3D, and
/// plan::Replicas, in the order in which they are listed to users.
[[nodiscard]] const std::vector<plan::NamedPlanner>& planners();

}  // namespace heddle::inline v0::systems

#if HEDDLE_DEFINES_SYSTEMS
#include <heddle/systems/planners.ipp>
#endif
