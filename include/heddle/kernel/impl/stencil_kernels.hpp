// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// The two kernels of a stencil: one reads the grid where it lies, the other brings tiles of it to
/// level-0 scratch.

#include <cstddef>
#include <cstdint>

#include <Kokkos_Core.hpp>

#include <heddle/device/staging.hpp>
#include <heddle/kernel/impl/stencil_plan.hpp>
#include <heddle/kernel/impl/tiles.hpp>
#include <heddle/kernel/impl/walk.hpp>
#include <heddle/kernel/impl/window.hpp>
#include <heddle/kernel/view.hpp>

namespace heddle::inline v0::kernel::impl {

/// The points [begin, end) along one axis.
struct Span {
  std::ptrdiff_t begin, end;
  [[nodiscard]] KOKKOS_FUNCTION std::ptrdiff_t size() const { return end - begin; }
};

/// What both kernels know of their stencil.
template <class F, class Out, class In>
struct StencilGrid {
  F f;
  Out* out;
  const In* in;
  Triple<std::ptrdiff_t> extent;  // of the grid
  Triple<std::ptrdiff_t> in_stride, out_stride;
  Triple<std::ptrdiff_t> radius;
  Triple<Span> points;  // to compute
  Boundary boundary;
  In outside;
  Triple<std::ptrdiff_t> tile, count;  // see StencilPlan

  /// The points of tile number `index`; columns vary fastest.
  [[nodiscard]] KOKKOS_FUNCTION Triple<Span> points_of(std::ptrdiff_t index) const {
    const std::ptrdiff_t column = index % count.columns + points.columns.begin / tile.columns;
    const std::ptrdiff_t row = index / count.columns % count.rows;
    const std::ptrdiff_t plane = index / count.columns / count.rows;
    return {piece(points.planes, points.planes.begin + plane * tile.planes, tile.planes),
            piece(points.rows, points.rows.begin + row * tile.rows, tile.rows),
            piece(points.columns, column * tile.columns, tile.columns)};
  }

  [[nodiscard]] KOKKOS_FUNCTION static std::ptrdiff_t smaller(std::ptrdiff_t a, std::ptrdiff_t b) {
    return a < b ? a : b;
  }
  [[nodiscard]] KOKKOS_FUNCTION static std::ptrdiff_t larger(std::ptrdiff_t a, std::ptrdiff_t b) {
    return a < b ? b : a;
  }

 private:
  [[nodiscard]] KOKKOS_FUNCTION static Span piece(const Span& all, std::ptrdiff_t begin,
                                                  std::ptrdiff_t length) {
    return {larger(begin, all.begin), smaller(begin + length, all.end)};
  }
};

/// One index per tile, on host cores: what is read again is found in the cache.
template <ExecutionSpace Exec, int Rank, bool Left, class F, class Out, class In>
struct StencilDirect {
  StencilGrid<F, Out, In> grid;

  KOKKOS_FUNCTION void operator()(std::int64_t index) const {
    const auto points = grid.points_of(index);
    if (grid.boundary == Boundary::interior)
      compute_plain(points);
    else
      compute_to_edge(points);
  }

  /// Points whose neighbourhoods lie in the grid.
  KOKKOS_FUNCTION void compute_plain(const Triple<Span>& points) const {
    for (std::ptrdiff_t p = points.planes.begin; p < points.planes.end; ++p)
      for (std::ptrdiff_t r = points.rows.begin; r < points.rows.end; ++r)
        compute_row(
            grid.f,
            grid.out + p * grid.out_stride.planes + r * grid.out_stride.rows + points.columns.begin,
            grid.in + p * grid.in_stride.planes + r * grid.in_stride.rows + points.columns.begin,
            points.columns.size(), grid.in_stride.planes, grid.in_stride.rows);
  }

  /// A function of its own, so that the loop has all registers for itself.
  [[gnu::noinline]] KOKKOS_FUNCTION static void compute_row(const F& f, Out* out, const In* in,
                                                            std::ptrdiff_t count,
                                                            std::ptrdiff_t plane,
                                                            std::ptrdiff_t row) {
    HEDDLE_INDEPENDENT
    for (std::ptrdiff_t c = 0; c < count; ++c)
      out[c] = f(PlainWindow<In, Rank, Left>{in + c, plane, row});
  }

  /// Points of which some have neighbours beyond the grid.
  KOKKOS_FUNCTION void compute_to_edge(const Triple<Span>& points) const {
    for (std::ptrdiff_t p = points.planes.begin; p < points.planes.end; ++p)
      for (std::ptrdiff_t r = points.rows.begin; r < points.rows.end; ++r) {
        const Span columns = points.columns;
        const bool edge = near_edge(p, grid.radius.planes, grid.extent.planes) ||
                          near_edge(r, grid.radius.rows, grid.extent.rows);
        Span plain{grid.larger(columns.begin, grid.radius.columns),
                   grid.smaller(columns.end, grid.extent.columns - grid.radius.columns)};
        if (edge || plain.size() < 0) plain = {columns.begin, columns.begin};
        compute_plain({{p, p + 1}, {r, r + 1}, plain});
        for (std::ptrdiff_t c = columns.begin; c < plain.begin; ++c) compute_edge(p, r, c);
        for (std::ptrdiff_t c = plain.end; c < columns.end; ++c) compute_edge(p, r, c);
      }
  }

  KOKKOS_FUNCTION void compute_edge(std::ptrdiff_t p, std::ptrdiff_t r, std::ptrdiff_t c) const {
    grid.out[p * grid.out_stride.planes + r * grid.out_stride.rows + c] =
        grid.f(EdgeWindow<In, Rank, Left>{
            grid.in, grid.in_stride, grid.extent, {p, r, c}, grid.boundary, grid.outside});
  }

  [[nodiscard]] KOKKOS_FUNCTION static bool near_edge(std::ptrdiff_t at, std::ptrdiff_t radius,
                                                      std::ptrdiff_t extent) {
    return at < radius || at >= extent - radius;
  }
};

/// One team per tile: the planes of the input come to its scratch one after another.
template <ExecutionSpace Exec, int Rank, bool Left, class F, class Out, class In>
struct StencilStaged {
  using Member = typename Kokkos::TeamPolicy<Exec>::member_type;
  /// Threads of a GPU write their points where they belong; cores gather a plane and copy it.
  static constexpr bool gathers = staging<Exec>::scratch != Scratch::shared;
  StencilGrid<F, Out, In> grid;
  std::size_t ring_bytes, output_bytes;

  KOKKOS_FUNCTION void operator()(const Member& team) const {
    const auto points = grid.points_of(team.league_rank());
    const std::ptrdiff_t radius = grid.radius.planes, slots = 2 * radius + 1;
    const std::ptrdiff_t row = points.columns.size() + 2 * grid.radius.columns;
    const std::ptrdiff_t plane = row * (points.rows.size() + 2 * grid.radius.rows);
    In* const ring = scratch<In>(team, ring_bytes);
    Out* const gathered = gathers ? scratch<Out>(team, output_bytes) : nullptr;
    staging<Exec> stage(team);

    // The slot of a plane: its distance from the first that the tile reads, round the ring.
    std::ptrdiff_t next = points.planes.begin - radius, slot = 0;
    for (; next < points.planes.begin + radius; ++next, slot = (slot + 1) % slots)
      bring_plane(stage, team, next, points, ring + slot * plane);
    for (std::ptrdiff_t p = points.planes.begin; p < points.planes.end; ++p, ++next) {
      bring_plane(stage, team, next, points, ring + slot * plane);
      stage.wait();
      const std::ptrdiff_t middle = slot - radius + (slot < radius ? slots : 0);
      const RingWindow<In, Rank, Left> corner{
          ring, plane, row, middle, slots, grid.radius.rows * row + grid.radius.columns};
      Out* const out = grid.out + p * grid.out_stride.planes +
                       points.rows.begin * grid.out_stride.rows + points.columns.begin;
      compute(team, points, corner, gathers ? gathered : out,
              gathers ? points.columns.size() : grid.out_stride.rows);
      if constexpr (gathers)
        stage.put(out, gathered,
                  Rows{static_cast<std::size_t>(points.rows.size()),
                       static_cast<std::size_t>(points.columns.size()),
                       static_cast<std::size_t>(grid.out_stride.rows)});
      stage.wait();
      slot = (slot + 1) % slots;
    }
  }

 private:
  template <class T>
  KOKKOS_FUNCTION static T* scratch(const Member& team, std::size_t bytes) {
    return static_cast<T*>(team.team_scratch(0).get_shmem_aligned(bytes, dma_line));
  }

  /// to[r][c] = f there, for the points of one plane of the tile.
  KOKKOS_FUNCTION void compute(const Member& team, const Triple<Span>& points,
                               const RingWindow<In, Rank, Left>& corner, Out* to,
                               std::ptrdiff_t to_stride) const {
    const std::ptrdiff_t rows = points.rows.size(), columns = points.columns.size();
    const F& f = grid.f;
    if constexpr (gathers) {
      for (std::ptrdiff_t r = 0; r < rows; ++r) {
        const std::ptrdiff_t centre = corner.centre + r * corner.row;
        Out* const line = to + r * to_stride;
        HEDDLE_INDEPENDENT
        for (std::ptrdiff_t c = 0; c < columns; ++c) {
          RingWindow<In, Rank, Left> window = corner;
          window.centre = centre + c;
          line[c] = f(window);
        }
      }
    } else {
      Kokkos::parallel_for(Kokkos::TeamVectorRange(team, rows * columns), [&](std::ptrdiff_t e) {
        const std::ptrdiff_t r = e / columns, c = e % columns;
        RingWindow<In, Rank, Left> window = corner;
        window.centre += r * corner.row + c;
        to[r * to_stride + c] = f(window);
      });
    }
  }

  /// Begins to bring what the tile needs of plane number `p`, which may lie outside of the grid.
  KOKKOS_FUNCTION void bring_plane(staging<Exec>& stage, const Member& team, std::ptrdiff_t p,
                                   const Triple<Span>& points, In* to) const {
    const Span rows{points.rows.begin - grid.radius.rows, points.rows.end + grid.radius.rows};
    const Span columns{points.columns.begin - grid.radius.columns,
                       points.columns.end + grid.radius.columns};
    const bool outside = p < 0 || p >= grid.extent.planes;
    if (outside && grid.boundary == Boundary::constant) {
      fill(team, to, rows.size() * columns.size());
      return;
    }
    const In* const plane = grid.in + wrap(p, grid.extent.planes) * grid.in_stride.planes;
    const bool within = rows.begin >= 0 && rows.end <= grid.extent.rows && columns.begin >= 0 &&
                        columns.end <= grid.extent.columns;
    if (within) {
      stage.get(
          to, plane + rows.begin * grid.in_stride.rows + columns.begin,
          Rows{static_cast<std::size_t>(rows.size()), static_cast<std::size_t>(columns.size()),
               static_cast<std::size_t>(grid.in_stride.rows)});
      return;
    }
    for (std::ptrdiff_t r = rows.begin; r < rows.end; ++r, to += columns.size()) {
      if ((r < 0 || r >= grid.extent.rows) && grid.boundary == Boundary::constant)
        fill(team, to, columns.size());
      else
        bring_row(stage, team, plane + wrap(r, grid.extent.rows) * grid.in_stride.rows, columns,
                  to);
    }
  }

  /// A row that reaches beyond the grid, in pieces.
  KOKKOS_FUNCTION void bring_row(staging<Exec>& stage, const Member& team, const In* row,
                                 const Span& columns, In* to) const {
    const std::ptrdiff_t extent = grid.extent.columns;
    for (std::ptrdiff_t c = columns.begin; c < columns.end;) {
      const bool outside = c < 0 || c >= extent;
      std::ptrdiff_t length = columns.end - c;
      if (outside && grid.boundary == Boundary::constant) {
        if (c < 0) length = grid.smaller(length, -c);
        fill(team, to, length);
      } else {
        const std::ptrdiff_t from = wrap(c, extent);
        length = grid.smaller(length, extent - from);
        stage.get(to, row + from, static_cast<std::size_t>(length));
      }
      c += length;
      to += length;
    }
  }

  KOKKOS_FUNCTION void fill(const Member& team, In* to, std::ptrdiff_t count) const {
    const In value = grid.outside;
    Kokkos::parallel_for(Kokkos::TeamVectorRange(team, count),
                         [=](std::ptrdiff_t i) { to[i] = value; });
  }

  KOKKOS_FUNCTION static std::ptrdiff_t wrap(std::ptrdiff_t at, std::ptrdiff_t extent) {
    return EdgeWindow<In, Rank, Left>::wrap(at, extent);
  }
};

}  // namespace heddle::inline v0::kernel::impl
