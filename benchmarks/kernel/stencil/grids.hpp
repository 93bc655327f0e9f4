// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// The two stencils that the competitors compute, on grids that they share.

#include <cstddef>

namespace bench {

/// One step of u' = u + c (sum of the neighbours - 2 Rank u) on the inner points of a grid,
/// row-major and of equal length along all axes.
struct HeatGrid {
  double* next;
  const double* now;
  std::size_t length;
};

inline constexpr double heat_factor = 0.1;

/// By loops as one writes them for host cores, blocked for the cache by `block` rows: OpenMP over
/// the blocks, whole rows in the inner loop. In 2-d the rows of a block follow each other; in 3-d
/// a block is `block` rows of all planes of a slab, of which every thread has one.
void hand_blocked_2d(const HeatGrid& grid, std::size_t block);
void hand_blocked_3d(const HeatGrid& grid, std::size_t block);

}  // namespace bench
