// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors

/// @file
/// The other side of kernel/stencil: the loops by hand. Without OpenMP they run on one thread.

#include <algorithm>
#include <cstddef>
#if defined(_OPENMP)
#include <omp.h>
#define IN_PARALLEL _Pragma("omp parallel for schedule(static)")
#define BOTH_IN_PARALLEL _Pragma("omp parallel for collapse(2) schedule(static)")
#define VECTORISED _Pragma("omp simd")
#else
#define IN_PARALLEL
#define BOTH_IN_PARALLEL
#define VECTORISED
#endif

#include "grids.hpp"

namespace bench {
namespace {

std::size_t threads() {
#if defined(_OPENMP)
  return static_cast<std::size_t>(omp_get_max_threads());
#else
  return 1;
#endif
}

}  // namespace

void hand_blocked_2d(const HeatGrid& grid, std::size_t block) {
  const std::size_t n = grid.length, inner = n - 2;
  const std::size_t blocks = (inner + block - 1) / block;
  IN_PARALLEL
  for (std::size_t b = 0; b < blocks; ++b) {
    const std::size_t end = std::min(1 + (b + 1) * block, n - 1);
    for (std::size_t i = 1 + b * block; i < end; ++i) {
      const double* const u = grid.now + i * n;
      double* const to = grid.next + i * n;
      VECTORISED
      for (std::size_t j = 1; j < n - 1; ++j)
        to[j] = u[j] + heat_factor * (((u[j - n] + u[j + n]) + (u[j - 1] + u[j + 1])) - 4 * u[j]);
    }
  }
}

void hand_blocked_3d(const HeatGrid& grid, std::size_t block) {
  const std::size_t n = grid.length, inner = n - 2, plane = n * n;
  const std::size_t blocks = (inner + block - 1) / block;
  const std::size_t slabs = threads();
  BOTH_IN_PARALLEL
  for (std::size_t s = 0; s < slabs; ++s)
    for (std::size_t b = 0; b < blocks; ++b) {
      const std::size_t end = std::min(1 + (b + 1) * block, n - 1);
      for (std::size_t i = 1 + s * inner / slabs; i < 1 + (s + 1) * inner / slabs; ++i)
        for (std::size_t j = 1 + b * block; j < end; ++j) {
          const double* const u = grid.now + i * plane + j * n;
          double* const to = grid.next + i * plane + j * n;
          VECTORISED
          for (std::size_t k = 1; k < n - 1; ++k)
            to[k] = u[k] + heat_factor * (((u[k - plane] + u[k + plane]) + (u[k - n] + u[k + n]) +
                                           (u[k - 1] + u[k + 1])) -
                                          6 * u[k]);
        }
    }
}

}  // namespace bench
