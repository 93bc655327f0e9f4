// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors

/// @file
/// MPI and nothing else: do ranks start, and do their messages arrive? scripts/gpu asks where
/// neither MPI nor a device need be installed.

#include <iostream>

#include <mpi.h>

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  int rank = 0, size = 0, sum = 0;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  const int mine = rank + 1;
  MPI_Allreduce(&mine, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
  const bool right = sum == size * (size + 1) / 2;
  if (rank == 0) std::cout << size << " ranks" << (right ? "\n" : ", whose sum is wrong\n");
  MPI_Finalize();
  return right ? 0 : 1;
}
