// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// Deduces the place of an AdaptiveRunner that is constructed from an MPI communicator.

#include <mpi.h>

#include <heddle/comm/planned_mesh.hpp>
#include <heddle/execute/adaptive_runner.hpp>
#include <heddle/plan/planner/plan_choice.hpp>

namespace heddle::inline v0 {

/// `AdaptiveRunner run(model, choice, MPI_COMM_WORLD, options)` runs on a PlannedMesh of its own
/// over the communicator, which takes the plans of the run.
template <class M>
AdaptiveRunner(M&, plan::PlanChoice, MPI_Comm, AdaptiveOptions = {})
    -> AdaptiveRunner<M, plan::PlanChoice, PlannedMesh>;

}  // namespace heddle::inline v0
