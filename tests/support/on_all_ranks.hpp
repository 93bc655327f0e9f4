// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// on_all_ranks(): what the MPI ranks of a test agree on. nap_until_all_arrive(): a barrier that
/// leaves the cores to others.

#include <mpi.h>

#include <heddle/execute/idle.hpp>

namespace heddle::test {

/// Returns whether `mine` is true on all ranks of MPI_COMM_WORLD, which all call it.
inline bool on_all_ranks(bool mine) {
  int all = mine ? 1 : 0;
  MPI_Allreduce(MPI_IN_PLACE, &all, 1, MPI_INT, MPI_LAND, MPI_COMM_WORLD);
  return all != 0;
}

/// Waits until all ranks of `comm` have called this. MPI_Barrier spins meanwhile, and then nothing
/// tells a test from other programs on its cores, see SleepNoise.
inline void nap_until_all_arrive(MPI_Comm comm) {
  MPI_Request request = MPI_REQUEST_NULL;
  MPI_Ibarrier(comm, &request);
  int done = 0;
  MPI_Test(&request, &done, MPI_STATUS_IGNORE);
  for (Waiting waiting(Idle::nap); done == 0; MPI_Test(&request, &done, MPI_STATUS_IGNORE))
    waiting();
}

}  // namespace heddle::test
