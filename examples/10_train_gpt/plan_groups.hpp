// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// The groups of ranks of train_gpt's `--attention flex`.

#include <mpi.h>

#include "settings.hpp"

namespace examples {

/// Sets Settings::plans of `--attention flex`: the groups for the sequences of every step. Their
/// costs are predicted for this model, from the links and the matrix products that --costs names.
/// Prints the plan of the first step on rank 0, and the predicted time of all steps beside that of
/// groups of one size. Does nothing for another method. Collective.
/// @throws infeasible if no group can hold a sequence.
void plan_groups(Settings& s, MPI_Comm comm);

}  // namespace examples
