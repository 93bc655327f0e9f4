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

/// What a stencil computes, in planes, rows and columns.
struct StencilShape {
  Triple<std::size_t> points;             ///< to compute
  Triple<std::size_t> first;              ///< of them in the grid
  Triple<std::size_t> radius;             ///< 0 along an axis that the grid does not have
  std::size_t input_bytes, output_bytes;  ///< of an element; 0 for an output that is not kept
};

/// The tiles of a grid. The columns of a tile begin at a multiple of `tile.columns` in the grid,
/// so that its rows begin at an aligned address where those of the grid do.
struct StencilPlan {
  Triple<std::size_t> tile;   ///< points of one, at most
  Triple<std::size_t> count;  ///< tiles along each axis

  [[nodiscard]] std::size_t tiles() const { return count.planes * count.rows * count.columns; }
};

/// a b, or the largest number where that is larger: a radius may be any.
[[nodiscard]] inline std::size_t product(std::size_t a, std::size_t b) {
  constexpr std::size_t most = std::numeric_limits<std::size_t>::max();
  return b > 0 && a > most / b ? most : a * b;
}

/// Bytes of the ring of input planes of a tile, without its output.
[[nodiscard]] inline std::size_t ring_bytes(const StencilShape& shape,
                                            const Triple<std::size_t>& tile) {
  const std::size_t row = product(tile.columns + 2 * shape.radius.columns, shape.input_bytes);
  return product(2 * shape.radius.planes + 1, product(tile.rows + 2 * shape.radius.rows, row));
}

/// Bytes of fast memory that a tile needs: its input planes and one plane of its output.
[[nodiscard]] inline std::size_t stencil_bytes(const StencilShape& shape,
                                               const Triple<std::size_t>& tile) {
  const std::size_t ring = ring_bytes(shape, tile);
  const std::size_t output = tile.rows * tile.columns * shape.output_bytes;
  return std::max(ring, ring + output);  // the sum is smaller where it is too large for its type
}

/// The plan with tiles of this size, cut to the grid.
[[nodiscard]] inline StencilPlan plan_with(const StencilShape& shape, Triple<std::size_t> tile) {
  const auto pieces = [](std::size_t length, std::size_t piece) {
    return (length + piece - 1) / piece;
  };
  tile = {std::min(tile.planes, shape.points.planes), std::min(tile.rows, shape.points.rows),
          std::min(tile.columns, shape.first.columns + shape.points.columns)};
  const std::size_t skipped = shape.first.columns / tile.columns;
  return {tile,
          {pieces(shape.points.planes, tile.planes), pieces(shape.points.rows, tile.rows),
           pieces(shape.first.columns + shape.points.columns, tile.columns) - skipped}};
}

/// Elements moved between memory and cores with this plan, as a multiple of the least possible:
/// every element of the input read once and every point of the output written once.
[[nodiscard]] inline double traffic(const StencilShape& shape, const StencilPlan& plan) {
  const auto along = [](std::size_t points, std::size_t radius, std::size_t tiles) {
    return static_cast<double>(points + 2 * radius * tiles);
  };
  const auto read = [&](const Triple<std::size_t>& tiles) {
    return along(shape.points.planes, shape.radius.planes, tiles.planes) *
           along(shape.points.rows, shape.radius.rows, tiles.rows) *
           along(shape.points.columns, shape.radius.columns, tiles.columns);
  };
  const auto all = [&](std::size_t skipped_planes, std::size_t skipped_rows,
                       std::size_t skipped_columns) {
    return along(shape.points.planes, skipped_planes, 1) *
           along(shape.points.rows, skipped_rows, 1) *
           along(shape.points.columns, skipped_columns, 1);
  };
  const double grid = all(shape.first.planes, shape.first.rows, shape.first.columns);
  const double written = all(0, 0, 0);
  return (read(plan.count) + written) / (grid + written);
}

/// The tiles that keep most of `cores` busy among those that fit into `bytes` of fast memory and
/// whose traffic() is at most `most_traffic`. Rows are cut only where that is needed, into pieces
/// of whole lines of `line` elements, four at least and two in the last: long rows move best. Where
/// no such tile moves so little, the one that moves least, of any number of lines; where none of
/// those fits, one with shorter rows. No tiles at all (tile.planes == 0) where not even one point
/// fits.
[[nodiscard]] inline StencilPlan plan_stencil(const StencilShape& shape, std::size_t bytes,
                                              std::size_t cores, std::size_t line,
                                              double most_traffic) {
  constexpr double busy_enough = 0.95;
  StencilPlan best{};
  double best_busy = 0, best_traffic = 0;
  const auto consider = [&](const StencilPlan& plan) {
    const double moved = traffic(shape, plan);
    const auto tiles = static_cast<double>(plan.tiles());
    const auto rounds = static_cast<double>((plan.tiles() + cores - 1) / cores);
    const double busy = tiles / (rounds * static_cast<double>(cores));
    const bool little = moved <= most_traffic, best_little = best_traffic <= most_traffic;
    const bool first = best.tile.planes == 0;
    const bool better = little != best_little ? little
                        : little              ? busy > best_busy
                                              : moved < best_traffic;
    if (first || better) best = plan, best_busy = busy, best_traffic = moved;
  };
  // Cuts an axis into 1, 2, 3, ... pieces, and skips the numbers that make no new length.
  const auto each_cut = [](std::size_t length, std::size_t unit, auto&& body) {
    for (std::size_t piece = length; piece > 0;) {
      if (!body(piece)) return;
      const std::size_t pieces = (length + piece - 1) / piece + 1;
      const std::size_t next = ((length + pieces - 1) / pieces + unit - 1) / unit * unit;
      piece = next < piece ? next : piece > unit ? (piece - 1) / unit * unit : 0;
    }
  };
  const auto try_columns = [&](std::size_t columns) {
    each_cut(shape.points.rows, 1, [&](std::size_t rows) {
      if (stencil_bytes(shape, {1, rows, columns}) > bytes) return true;
      const std::size_t across = plan_with(shape, {shape.points.planes, rows, columns}).tiles();
      // More slabs than this leave no core with less to do.
      const std::size_t slabs = (8 * cores + across - 1) / across;
      each_cut(shape.points.planes, 1, [&](std::size_t planes) {
        consider(plan_with(shape, {planes, rows, columns}));
        return best_busy < 1 && (shape.points.planes + planes - 1) / planes < slabs;
      });
      return best_busy < 1 || best_traffic > most_traffic;
    });
  };
  const std::size_t whole = shape.first.columns + shape.points.columns;
  const auto none = [&] { return best.tile.planes == 0; };
  each_cut(whole, line, [&](std::size_t columns) {
    const bool good = !none() && best_traffic <= most_traffic;
    if (good && columns < 4 * line) return false;
    if (good && (whole - 1) % columns + 1 < 2 * line) return true;
    try_columns(columns);
    return none() || best_busy < busy_enough || best_traffic > most_traffic;
  });
  if (none())
    each_cut(std::min(line, whole), 1, [&](std::size_t columns) {
      try_columns(columns);
      return none();
    });
  return best;
}

}  // namespace heddle::inline v0::kernel::impl
