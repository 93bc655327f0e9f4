// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// Deduces the place of a Replanner that is constructed from an MPI communicator.

#include <mpi.h>

#include <heddle/comm/planned_mesh.hpp>
#include <heddle/execute/replanner.hpp>
#include <heddle/machine/machine.hpp>
#include <heddle/plan/profile.hpp>

namespace heddle::inline v0 {

/// `Replanner run(model, profile, machine, MPI_COMM_WORLD, options)` runs on a PlannedMesh of its
/// own over the communicator, which takes the plans of the run.
template <class M>
Replanner(M&, Profile, Machine, MPI_Comm, TrainingOptions) -> Replanner<M, PlannedMesh>;

}  // namespace heddle::inline v0
