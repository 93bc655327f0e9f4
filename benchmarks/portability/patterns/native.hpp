// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// The applications in native code. One set is compiled, for the back end that Kokkos was built
/// for: native_openmp.cpp or native_serial.cpp. All take row-major arrays in host memory.

#include <algorithm>
#include <cstddef>

#include "ours.hpp"

namespace portability::native {

extern const char* const back_end;  ///< its name, in small letters

void triad(double* out, const double* x, const double* y, std::size_t n);
void dot(double* out, const double* x, const double* y, std::size_t n);
void stencil(double* out, const double* in, const Grid& grid);
/// The same in blocks of rows whose planes stay in the second-level cache.
void blocked_stencil(double* out, const double* in, const Grid& grid);

/// Row (i, j) of the stencil's result, by pointers that the compiler knows not to overlap.
inline void stencil_row(double* __restrict out, const double* __restrict in, const Grid& grid,
                        std::size_t i, std::size_t j) {
  const std::size_t row = grid.n2, plane = grid.n1 * grid.n2, first = (i * grid.n1 + j) * grid.n2;
  double* const to = out + first;
  const double* const at = in + first;
  for (std::size_t k = 1; k < row - 1; ++k)
    to[k] = centre * at[k] + neighbour * (at[k - plane] + at[k + plane] + at[k - row] +
                                          at[k + row] + at[k - 1] + at[k + 1]);
}

/// So many that three planes of the input and one of the output take 512 KiB.
inline std::size_t rows_of_a_block(const Grid& grid) {
  return std::max<std::size_t>(1, (std::size_t{512} << 10) / (4 * sizeof(double) * grid.n2));
}

}  // namespace portability::native
