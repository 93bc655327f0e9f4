// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// The cells of a periodic mesh that a particle's cloud covers, and the factors of its waves.

#include <array>
#include <cmath>
#include <cstddef>
#include <numbers>

#include "particles.hpp"

namespace nbody {

using MeshPlace = std::array<std::size_t, 3>;  ///< a cell, by its number in each dimension

/// Calls `visit(place, share)` for the 8 cells that a particle's cloud covers.
template <class Visit>
void for_each_cell(const Vector3& at, std::size_t side, Visit visit) {
  for (std::size_t corner = 0; corner < 8; ++corner) {
    MeshPlace place{};
    double share = 1;
    for (std::size_t d = 0; d < 3; ++d) {
      const double scaled = at[d] * static_cast<double>(side);
      const double low = std::floor(scaled);
      const std::size_t up = corner >> d & 1;
      place[d] = (static_cast<std::size_t>(low) + up) % side;
      share *= up == 1 ? scaled - low : 1 - (scaled - low);
    }
    visit(place, share);
  }
}

/// Returns the number of the wave at place `n` of a transform, from -side / 2 on.
[[nodiscard]] inline double wave_of(std::size_t n, std::size_t side) {
  return static_cast<double>(n) - static_cast<double>(2 * n < side ? 0 : side);
}

/// Returns the factor by which the cloud multiplies a wave.
[[nodiscard]] inline double cloud_window(const MeshPlace& at, std::size_t side) {
  double window = 1;
  for (const std::size_t n : at) {
    const double half = std::numbers::pi * wave_of(n, side) / static_cast<double>(side);
    if (half != 0) window *= std::pow(std::sin(half) / half, 2);
  }
  return window;
}

/// Returns the factor between a wave of the density and the potential's, -4 pi / k^2 exp(-k^2 rs^2)
/// with the window of the cloud taken out twice: once for the way in and once for the way out.
[[nodiscard]] inline double green(const MeshPlace& at, std::size_t side, double rs) {
  double square = 0;
  for (const std::size_t n : at) square += std::pow(2 * std::numbers::pi * wave_of(n, side), 2);
  if (square == 0) return 0;
  const double window = cloud_window(at, side);
  return -4 * std::numbers::pi / square * std::exp(-square * rs * rs) / (window * window);
}

/// Returns the pull along one dimension between 4 neighbours at -2, -1, 1 and 2 cells.
[[nodiscard]] inline double slope(double far_below, double below, double above, double far_above,
                                  std::size_t side) {
  return -static_cast<double>(side) / 12 * (8 * (above - below) - (far_above - far_below));
}

}  // namespace nbody
