// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// on_all_ranks(): what the MPI ranks of a test agree on.

#include <mpi.h>

namespace heddle::test {

/// Returns whether `mine` is true on all ranks of MPI_COMM_WORLD, which all call it.
inline bool on_all_ranks(bool mine) {
  int all = mine ? 1 : 0;
  MPI_Allreduce(MPI_IN_PLACE, &all, 1, MPI_INT, MPI_LAND, MPI_COMM_WORLD);
  return all != 0;
}

}  // namespace heddle::test
