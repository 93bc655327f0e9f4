// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// The choice of train_gpt's attention by measured links and products.

#include <mpi.h>

#include "settings.hpp"

namespace examples {

/// Sets method, axes and ways of `--attention automatic` to those of the least predicted time, and
/// prints all of them on rank 0. Times are those of the messages over the links between the ranks
/// that divide a sequence, and of the matrix products of attention, as --costs says. Does nothing
/// for another method. Collective.
/// @throws contract_error if no method suits the heads.
void choose_attention(Settings& s, MPI_Comm comm);

}  // namespace examples
