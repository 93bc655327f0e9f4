// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// The run of train_gpt --local-steps.

#include <mpi.h>

#include "settings.hpp"

namespace examples {

/// Trains as `s` says on the ranks of `comm`: each replica of the pipeline takes --local-steps
/// steps of its own, then all of them take the average of the round before, as CO2 does. Prints
/// what came of it on rank 0. Throws error where the check fails. Instantiated for float and
/// double.
template <class Real>
void train_locally(const Settings& s, MPI_Comm comm);

}  // namespace examples
