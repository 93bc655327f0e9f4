// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// How the grid of a stencil is cut into tiles. A tile goes through its planes one after another
/// and keeps the 2 radius + 1 that it needs of the input in fast memory, so that along planes no
/// element is read twice but where two tiles meet.

#include <algorithm>
#include <cstddef>
#include <limits>

#include <heddle/kernel/impl/window.hpp>

namespace heddle::inline v0::kernel::impl {

/// The size of a stencil computation.
template <std::size_t Axes>
struct StencilShape {
  PerAxis<std::size_t, Axes> points;      ///< the points to compute
  PerAxis<std::size_t, Axes> first;       ///< the first of them in the grid
  PerAxis<std::size_t, Axes> radius;      ///< 0 along an axis that the grid does not have
  std::size_t input_bytes, output_bytes;  ///< bytes of an element; 0 for an output that is not kept

  /// Leaves out the points whose neighbourhoods reach beyond the grid.
  void leave_edges() {
    first = radius;
    for (std::size_t a = 0; a < Axes; ++a)
      points[a] = radius[a] < (points[a] + 1) / 2 ? points[a] - 2 * radius[a] : 0;
  }
  [[nodiscard]] bool empty() const {
    bool none = false;
    for (std::size_t a = 0; a < Axes; ++a) none = none || points[a] == 0;
    return none;
  }
};

/// A tile of some columns, and one point along every other axis.
template <std::size_t Axes>
[[nodiscard]] PerAxis<std::size_t, Axes> one_row(std::size_t columns) {
  PerAxis<std::size_t, Axes> tile;
  for (std::size_t a = 0; a < Axes; ++a) tile[a] = a < Axes - 1 ? 1 : columns;
  return tile;
}

/// The tiles of a grid. The columns of a tile begin at a multiple of its length along them in the
/// grid, so that its rows begin at an aligned address where those of the grid do.
template <std::size_t Axes>
struct StencilPlan {
  PerAxis<std::size_t, Axes> tile;   ///< points of one, at most; 0 planes: no plan
  PerAxis<std::size_t, Axes> count;  ///< tiles along each axis

  [[nodiscard]] std::size_t tiles() const {
    std::size_t all = 1;
    for (std::size_t a = 0; a < Axes; ++a) all *= count[a];
    return all;
  }
  [[nodiscard]] bool none() const { return tile[0] == 0; }
};

/// a b, or the largest number where that is larger: a radius may be any.
[[nodiscard]] inline std::size_t product(std::size_t a, std::size_t b) {
  constexpr std::size_t most = std::numeric_limits<std::size_t>::max();
  return b > 0 && a > most / b ? most : a * b;
}

/// Bytes of the ring of input planes of a tile, without its output.
template <std::size_t Axes>
[[nodiscard]] std::size_t ring_bytes(const StencilShape<Axes>& shape,
                                     const PerAxis<std::size_t, Axes>& tile) {
  std::size_t bytes = product(2 * shape.radius[0] + 1, shape.input_bytes);
  for (std::size_t a = 1; a < Axes; ++a) bytes = product(bytes, tile[a] + 2 * shape.radius[a]);
  return bytes;
}

/// Bytes of fast memory that a tile needs: its input planes and one plane of its output.
template <std::size_t Axes>
[[nodiscard]] std::size_t stencil_bytes(const StencilShape<Axes>& shape,
                                        const PerAxis<std::size_t, Axes>& tile) {
  const std::size_t ring = ring_bytes(shape, tile);
  std::size_t output = shape.output_bytes;
  for (std::size_t a = 1; a < Axes; ++a) output *= tile[a];
  return std::max(ring, ring + output);  // the sum is smaller where it is too large for its type
}

/// The plan with tiles of this size, cut to the grid.
template <std::size_t Axes>
[[nodiscard]] StencilPlan<Axes> plan_with(const StencilShape<Axes>& shape,
                                          const PerAxis<std::size_t, Axes>& tile) {
  StencilPlan<Axes> plan{};
  for (std::size_t a = 0; a < Axes; ++a) {
    const std::size_t before = a == Axes - 1 ? shape.first[a] : 0, end = before + shape.points[a];
    plan.tile[a] = std::min(tile[a], end);
    plan.count[a] = (end + plan.tile[a] - 1) / plan.tile[a] - before / plan.tile[a];
  }
  return plan;
}

/// Elements moved between memory and cores with this plan, as a multiple of the least possible:
/// every element of the input read once and every point of the output written once.
template <std::size_t Axes>
[[nodiscard]] double traffic(const StencilShape<Axes>& shape, const StencilPlan<Axes>& plan) {
  double read = 1, grid = 1, written = 1;
  for (std::size_t a = 0; a < Axes; ++a) {
    read *= static_cast<double>(shape.points[a] + 2 * shape.radius[a] * plan.count[a]);
    grid *= static_cast<double>(shape.points[a] + 2 * shape.first[a]);
    written *= static_cast<double>(shape.points[a]);
  }
  return (read + written) / (grid + written);
}

/// The next smaller length after `piece` where an axis is cut into 1, 2, 3, ... pieces of whole
/// units; numbers of pieces that make no new length are skipped. 0 after the last.
[[nodiscard]] inline std::size_t next_piece(std::size_t length, std::size_t piece,
                                            std::size_t unit) {
  const std::size_t pieces = (length + piece - 1) / piece + 1;
  const std::size_t next = ((length + pieces - 1) / pieces + unit - 1) / unit * unit;
  return next < piece ? next : piece > unit ? (piece - 1) / unit * unit : 0;
}

/// The tiles that keep most of `cores` busy among those that fit into `bytes` of fast memory and
/// whose traffic() is at most `most_traffic`. Rows are cut only where that is needed, into pieces
/// of whole lines of `line` elements, four at least and two in the last: long rows move best. Of
/// the axes between planes and columns the one that is longest in the tile is cut next, so that
/// tiles come near to cubes, which have the least surface. Where no such tile moves so little, the
/// one that moves least, of any number of lines; where none of those fits, one with shorter rows.
/// No plan where not even one point fits.
template <std::size_t Axes>
[[nodiscard]] StencilPlan<Axes> plan_stencil(const StencilShape<Axes>& shape, std::size_t bytes,
                                             std::size_t cores, std::size_t line,
                                             double most_traffic) {
  constexpr std::size_t last = Axes - 1;
  constexpr double busy_enough = 0.95;
  StencilPlan<Axes> best{};
  double best_busy = 0, best_traffic = 0;
  const auto consider = [&](const StencilPlan<Axes>& plan) {
    const double moved = traffic(shape, plan);
    const auto tiles = static_cast<double>(plan.tiles());
    const auto rounds = static_cast<double>((plan.tiles() + cores - 1) / cores);
    const double busy = tiles / (rounds * static_cast<double>(cores));
    const bool little = moved <= most_traffic, best_little = best_traffic <= most_traffic;
    const bool better = little != best_little ? little
                        : little              ? busy > best_busy
                                              : moved < best_traffic;
    if (best.none() || better) best = plan, best_busy = busy, best_traffic = moved;
  };
  const auto try_planes = [&](PerAxis<std::size_t, Axes> tile) {
    const std::size_t across = plan_with(shape, tile).tiles();
    // More slabs than this leave no core with less to do.
    const std::size_t slabs = (8 * cores + across - 1) / across;
    for (; tile[0] > 0; tile[0] = next_piece(shape.points[0], tile[0], 1)) {
      const auto plan = plan_with(shape, tile);
      consider(plan);
      if (best_busy == 1 || plan.count[0] >= slabs) return;
    }
  };
  const auto try_columns = [&](std::size_t columns) {
    auto tile = shape.points;
    tile[last] = columns;
    for (;;) {
      if (stencil_bytes(shape, tile) <= bytes) {
        try_planes(tile);
        if (best_busy == 1 && best_traffic <= most_traffic) return;
      }
      std::size_t longest = 1;
      for (std::size_t a = 2; a < last; ++a)
        if (tile[a] > tile[longest]) longest = a;
      if (longest == last || tile[longest] == 1) return;
      tile[longest] = next_piece(shape.points[longest], tile[longest], 1);
    }
  };
  const std::size_t whole = shape.first[last] + shape.points[last];
  for (std::size_t columns = whole; columns > 0; columns = next_piece(whole, columns, line)) {
    const bool good = !best.none() && best_traffic <= most_traffic;
    if (good && columns < 4 * line) return best;
    if (good && (whole - 1) % columns + 1 < 2 * line) continue;
    try_columns(columns);
    if (!best.none() && best_busy >= busy_enough && best_traffic <= most_traffic) return best;
  }
  for (std::size_t columns = std::min(line, whole); best.none() && columns > 0;
       columns = next_piece(std::min(line, whole), columns, 1))
    try_columns(columns);
  return best;
}

}  // namespace heddle::inline v0::kernel::impl
