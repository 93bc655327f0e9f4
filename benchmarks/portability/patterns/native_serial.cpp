// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors

/// @file
/// Native code for Kokkos's Serial back end: plain loops.

#if !defined(_OPENMP)

#include <algorithm>

#include "native.hpp"

namespace portability::native {

const char* const back_end = "serial";

void triad(double* __restrict out, const double* x, const double* y, std::size_t n) {
  for (std::size_t i = 0; i < n; ++i) out[i] = x[i] + triad_factor * y[i];
}

/// The compiler may not change the order of a sum; eight sums fill the vector units.
void dot(double* out, const double* x, const double* y, std::size_t n) {
  constexpr std::size_t sums = 8;
  double sum[sums] = {};
  const std::size_t whole = n - n % sums;
  for (std::size_t i = 0; i < whole; i += sums)
    for (std::size_t s = 0; s < sums; ++s) sum[s] += x[i + s] * y[i + s];
  for (std::size_t i = whole; i < n; ++i) sum[0] += x[i] * y[i];
  *out = ((sum[0] + sum[4]) + (sum[1] + sum[5])) + ((sum[2] + sum[6]) + (sum[3] + sum[7]));
}

void stencil(double* out, const double* in, const Grid& grid) {
  for (std::size_t i = 1; i < grid.n0 - 1; ++i)
    for (std::size_t j = 1; j < grid.n1 - 1; ++j) stencil_row(out, in, grid, i, j);
}

void blocked_stencil(double* out, const double* in, const Grid& grid) {
  const std::size_t rows = rows_of_a_block(grid);
  for (std::size_t block = 1; block < grid.n1 - 1; block += rows) {
    const std::size_t end = std::min(block + rows, grid.n1 - 1);
    for (std::size_t i = 1; i < grid.n0 - 1; ++i)
      for (std::size_t j = block; j < end; ++j) stencil_row(out, in, grid, i, j);
  }
}

}  // namespace portability::native

#endif
