// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// The pieces of a space-filling curve through a weighted grid: their weights, the cells that they
/// need of others, and whether they are connected.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <set>
#include <span>
#include <utility>
#include <vector>

#include <heddle/systems/photons/curve_cut.hpp>
#include <heddle/systems/photons/grid_curve.hpp>

namespace heddle::test {

/// Calls `visit` with each cell of the grid that shares a face with `cell`.
template <std::size_t D, class Visit>
void for_each_neighbour(const systems::GridCurve<D>& curve,
                        const typename systems::GridCurve<D>::Cell& cell, Visit visit) {
  for (std::size_t d = 0; d < D; ++d)
    for (const int step : {-1, 1}) {
      auto other = cell;
      other[d] += static_cast<std::uint32_t>(step);
      if (other[d] < curve.side()) visit(other);
    }
}

struct CurvePieces {
  double imbalance = 0;        ///< weight of the heaviest piece over the mean
  std::size_t ghosts = 0;      ///< pairs of a piece and a cell of another that touches it
  std::size_t components = 0;  ///< parts that are connected by faces, over all pieces
};

/// Cuts the curve through a grid into `pieces`. Cell weights are by key of the Morton curve.
template <std::size_t D>
[[nodiscard]] CurvePieces cut_grid(systems::CurveKind kind, int bits,
                                   std::span<const double> by_morton, int pieces) {
  const systems::GridCurve<D> curve(kind, bits), morton(systems::CurveKind::morton, bits);
  std::vector<std::uint64_t> keys;
  for (std::uint64_t m = 0; m < morton.size(); ++m) keys.push_back(curve.key(morton.cell(m)));
  const systems::CurveCut cut = systems::cut_curve(keys, by_morton, pieces);
  CurvePieces result;
  std::vector<double> weights(static_cast<std::size_t>(pieces));
  double all = 0;
  std::set<std::pair<int, std::uint64_t>> ghosts;
  std::vector<bool> seen(morton.size());
  for (std::uint64_t m = 0; m < morton.size(); ++m) {
    const int own = cut.owner(keys[m]);
    weights[static_cast<std::size_t>(own)] += by_morton[m];
    all += by_morton[m];
    if (!seen[m]) ++result.components;
    std::vector<std::uint64_t> open{m};  // flood the part of the piece from here
    while (!open.empty()) {
      const std::uint64_t at = open.back();
      open.pop_back();
      if (seen[at]) continue;
      seen[at] = true;
      for_each_neighbour(morton, morton.cell(at), [&](const auto& other) {
        const std::uint64_t there = morton.key(other);
        if (cut.owner(keys[there]) == own)
          open.push_back(there);
        else
          ghosts.emplace(own, there);
      });
    }
  }
  result.imbalance = *std::max_element(weights.begin(), weights.end()) * pieces / all;
  result.ghosts = ghosts.size();
  return result;
}

}  // namespace heddle::test
