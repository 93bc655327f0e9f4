// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// A program of the kind that is ported to Heddle: Kokkos loops, a halo and a reduction. It is
/// there twice, so that compile/consumers can compare what its sources take to compile.

#include <cstdint>

#include <mpi.h>

namespace heat {

/// The end of a run: equal on all ranks, and for both programs.
struct Result {
  double total = 0;   ///< the sum of all cells
  double change = 0;  ///< the sum of the squares of the last step's changes
};

/// Runs `steps` steps on a grid of size x size cells, whose rows are cut over the ranks of `comm`;
/// by Kokkos and MPI.
[[nodiscard]] Result by_hand(MPI_Comm comm, std::int64_t size, int steps);
/// The same by Heddle.
[[nodiscard]] Result ported(MPI_Comm comm, std::int64_t size, int steps);

}  // namespace heat
