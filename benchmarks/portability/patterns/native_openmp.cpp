// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors

/// @file
/// Native code for Kokkos's OpenMP back end: loops and OpenMP directives.

#if defined(_OPENMP)

#include <algorithm>

#include "native.hpp"

namespace portability::native {

const char* const back_end = "openmp";

void triad(double* out, const double* x, const double* y, std::size_t n) {
#pragma omp parallel for simd schedule(static)
  for (std::size_t i = 0; i < n; ++i) out[i] = x[i] + triad_factor * y[i];
}

void dot(double* out, const double* x, const double* y, std::size_t n) {
  double sum = 0;
#pragma omp parallel for simd schedule(static) reduction(+ : sum)
  for (std::size_t i = 0; i < n; ++i) sum += x[i] * y[i];
  *out = sum;
}

void stencil(double* out, const double* in, const Grid& grid) {
#pragma omp parallel for schedule(static)
  for (std::size_t i = 1; i < grid.n0 - 1; ++i)
    for (std::size_t j = 1; j < grid.n1 - 1; ++j) stencil_row(out, in, grid, i, j);
}

void blocked_stencil(double* out, const double* in, const Grid& grid) {
  const std::size_t rows = rows_of_a_block(grid);
#pragma omp parallel for schedule(static)
  for (std::size_t block = 1; block < grid.n1 - 1; block += rows) {
    const std::size_t end = std::min(block + rows, grid.n1 - 1);
    for (std::size_t i = 1; i < grid.n0 - 1; ++i)
      for (std::size_t j = block; j < end; ++j) stencil_row(out, in, grid, i, j);
  }
}

}  // namespace portability::native

#endif
