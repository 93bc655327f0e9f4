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
#include <heddle/kernel/impl/window.hpp>
#include <heddle/kernel/internal/walk.hpp>
#include <heddle/kernel/view.hpp>

namespace heddle::inline v0::kernel::impl {

/// The indices [begin, end) along one axis.
struct Span {
  std::ptrdiff_t begin, end;
  [[nodiscard]] KOKKOS_FUNCTION std::ptrdiff_t size() const { return end - begin; }
};

/// A piece of a grid, or of what lies around it.
template <std::size_t Axes>
using Box = PerAxis<Span, Axes>;

/// body(at) for all indices along the first `Until` axes of a box; along the others `at` is 0.
template <std::size_t Until, std::size_t Axis = 0, std::size_t Axes, class Body>
KOKKOS_INLINE_FUNCTION void for_each_index(const Box<Axes>& box, const Body& body,
                                           PerAxis<std::ptrdiff_t, Axes> at = {}) {
  if constexpr (Axis == Until)
    body(at);
  else
    for (at[Axis] = box[Axis].begin; at[Axis] < box[Axis].end; ++at[Axis])
      for_each_index<Until, Axis + 1>(box, body, at);
}

/// The data that both kernels share.
template <std::size_t Axes, class F, class Out, class In>
struct StencilGrid {
  using Indices = PerAxis<std::ptrdiff_t, Axes>;
  // The last axes. They are enumerators because Kokkos::Array takes indices by reference, and nvcc
  // defines no static member in device code.
  enum : std::size_t { rows = Axes - 2, columns = Axes - 1 };

  F f;
  Out* out;
  const In* in;
  Indices extent;  // of the grid
  Indices in_stride, out_stride;
  Indices radius;
  Box<Axes> points;  // to compute
  Boundary boundary;
  In outside;
  Indices tile, count;  // see StencilPlan

  /// The points of tile number `index`; columns vary fastest.
  [[nodiscard]] KOKKOS_FUNCTION Box<Axes> points_of(std::ptrdiff_t index) const {
    Box<Axes> box;
    for (std::size_t a = Axes; a-- > 0; index /= count[a]) {
      const std::ptrdiff_t piece = index % count[a], first = points[a].begin;
      const std::ptrdiff_t begin =
          a == columns ? (piece + first / tile[a]) * tile[a] : first + piece * tile[a];
      box[a] = {larger(begin, first), smaller(begin + tile[a], points[a].end)};
    }
    return box;
  }

  [[nodiscard]] KOKKOS_FUNCTION static std::ptrdiff_t smaller(std::ptrdiff_t a, std::ptrdiff_t b) {
    return a < b ? a : b;
  }
  [[nodiscard]] KOKKOS_FUNCTION static std::ptrdiff_t larger(std::ptrdiff_t a, std::ptrdiff_t b) {
    return a < b ? b : a;
  }
};

/// One index per tile, on host cores: what is read again is found in the cache.
template <ExecutionSpace Exec, std::size_t Rank, bool Left, class F, class Out, class In>
struct StencilDirect {
  using Grid = StencilGrid<axes_of<Rank>, F, Out, In>;
  using Indices = typename Grid::Indices;
  enum : std::size_t { columns = Grid::columns };
  Grid grid;

  KOKKOS_FUNCTION void operator()(std::int64_t index) const {
    const auto points = grid.points_of(index);
    // Two loops: to look for edges at every row costs a tenth of the time where rows are short.
    if (grid.boundary == Boundary::interior)
      for_each_index<columns>(points, [&](Indices at) { compute_plain(at, points[columns]); });
    else
      for_each_index<columns>(points, [&](Indices at) { compute_to_edge(at, points[columns]); });
  }

  /// A piece of a row whose neighbourhoods lie in the grid.
  KOKKOS_FUNCTION void compute_plain(Indices at, const Span& row) const {
    at[columns] = row.begin;
    compute_row(grid.f, grid.out + offset(at, grid.out_stride),
                grid.in + offset(at, grid.in_stride), row.size(), grid.in_stride);
  }

  /// A function of its own, so that the loop has all registers for itself.
  [[gnu::noinline]] KOKKOS_FUNCTION static void compute_row(const F& f, Out* out, const In* in,
                                                            std::ptrdiff_t count,
                                                            const Indices& in_stride) {
    const Indices stride = in_stride;  // which no store to `out` can change
    HEDDLE_INDEPENDENT
    for (std::ptrdiff_t c = 0; c < count; ++c)
      out[c] = f(PlainWindow<In, Rank, Left>{in + c, stride});
  }

  /// A piece of a row of which some points have neighbours beyond the grid.
  KOKKOS_FUNCTION void compute_to_edge(const Indices& at, const Span& row) const {
    Span plain{grid.larger(row.begin, grid.radius[columns]),
               grid.smaller(row.end, grid.extent[columns] - grid.radius[columns])};
    bool edge = plain.size() < 0;
    for (std::size_t a = 0; a < columns; ++a)
      edge = edge || at[a] < grid.radius[a] || at[a] >= grid.extent[a] - grid.radius[a];
    if (edge) plain = {row.begin, row.begin};
    compute_plain(at, plain);
    compute_edge(at, {row.begin, plain.begin});
    compute_edge(at, {plain.end, row.end});
  }

  KOKKOS_FUNCTION void compute_edge(Indices at, const Span& row) const {
    for (at[columns] = row.begin; at[columns] < row.end; ++at[columns])
      grid.out[offset(at, grid.out_stride)] = grid.f(EdgeWindow<In, Rank, Left>{
          grid.in, grid.in_stride, grid.extent, at, grid.boundary, grid.outside});
  }
};

/// One team per tile: the planes of the input come to its scratch one after another.
template <ExecutionSpace Exec, std::size_t Rank, bool Left, class F, class Out, class In>
struct StencilStaged {
  using Member = typename Kokkos::TeamPolicy<Exec>::member_type;
  using Grid = StencilGrid<axes_of<Rank>, F, Out, In>;
  using Indices = typename Grid::Indices;
  using Window = RingWindow<In, Rank, Left>;
  using Tile = Box<axes_of<Rank>>;
  enum : std::size_t { rows = Grid::rows, columns = Grid::columns };
  /// Threads of a GPU write their points where they belong; cores gather a plane and copy it.
  static constexpr bool gathers = staging<Exec>::scratch != Scratch::shared;
  Grid grid;
  std::size_t ring_bytes, output_bytes;

  KOKKOS_FUNCTION void operator()(const Member& team) const {
    const Tile points = grid.points_of(team.league_rank());
    const std::ptrdiff_t radius = grid.radius[0], slots = 2 * radius + 1;
    In* const ring = scratch<In>(team, ring_bytes);
    Out* const gathered = gathers ? scratch<Out>(team, output_bytes) : nullptr;
    Window corner{ring, {}, 0, slots, 0};
    Tile needed{};       // of the grid, for a plane of points
    Tile plane{};        // the points of one, counted from its first
    Indices first = {};  // which is this
    std::ptrdiff_t size = 1;
    for (std::size_t a = columns; a > 0; --a) {
      needed[a] = {points[a].begin - grid.radius[a], points[a].end + grid.radius[a]};
      plane[a] = {0, points[a].size()};
      first[a] = points[a].begin;
      corner.stride[a] = size;
      corner.centre += grid.radius[a] * size;
      size *= needed[a].size();
    }
    plane[0] = {0, 1};
    corner.stride[0] = size;
    staging<Exec> stage(team);

    // The slot of a plane: its distance from the first that the tile reads, round the ring.
    std::ptrdiff_t slot = 0;
    for (std::ptrdiff_t next = points[0].begin - radius; next < points[0].end + radius; ++next) {
      needed[0] = {next, next + 1};
      bring(stage, team, needed, corner.stride, grid.in, ring + slot * size);
      corner.slot = slot - radius + (slot < radius ? slots : 0);
      slot = (slot + 1) % slots;
      first[0] = next - radius;  // all that it needs is on its way
      if (first[0] < points[0].begin) continue;
      stage.wait();
      compute(stage, team, corner, plane, grid.out + offset(first, grid.out_stride), gathered);
      stage.wait();
    }
  }

 private:
  template <class T>
  KOKKOS_FUNCTION static T* scratch(const Member& team, std::size_t bytes) {
    return static_cast<T*>(team.team_scratch(0).get_shmem_aligned(bytes, dma_line));
  }

  /// The rows of a box in Views whose rows lie `stride` apart.
  [[nodiscard]] KOKKOS_FUNCTION static Rows rows_of(const Tile& box, const Indices& stride) {
    return {static_cast<std::size_t>(box[rows].size()),
            static_cast<std::size_t>(box[columns].size()), static_cast<std::size_t>(stride[rows])};
  }

  /// out = f, for the points of one plane of the tile.
  KOKKOS_FUNCTION void compute(staging<Exec>& stage, const Member& team, const Window& corner,
                               const Tile& plane, Out* out, Out* gathered) const {
    const F& f = grid.f;
    if constexpr (gathers) {
      const std::ptrdiff_t length = plane[columns].size();
      Out* to = gathered;
      for_each_index<columns>(plane, [&](const Indices& at) {
        const std::ptrdiff_t centre = corner.centre + offset(at, corner.stride);
        Out* const row = to;
        HEDDLE_INDEPENDENT
        for (std::ptrdiff_t c = 0; c < length; ++c) {
          Window window = corner;
          window.centre = centre + c;
          row[c] = f(window);
        }
        to += length;
      });
      const Out* from = gathered;
      for_each_index<rows>(plane, [&](const Indices& at) {
        stage.put(out + offset(at, grid.out_stride), from, rows_of(plane, grid.out_stride));
        from += plane[rows].size() * length;
      });
    } else {
      std::ptrdiff_t count = 1;
      for (std::size_t a = 1; a <= columns; ++a) count *= plane[a].size();
      Kokkos::parallel_for(Kokkos::TeamVectorRange(team, count), [&](std::ptrdiff_t index) {
        Indices at{};
        for (std::size_t a = columns; a > 1; --a) {
          at[a] = index % plane[a].size();
          index /= plane[a].size();
        }
        at[1] = index;
        Window window = corner;
        window.centre += offset(at, corner.stride);
        out[offset(at, grid.out_stride)] = f(window);
      });
    }
  }

  /// Begins to bring a box of the grid that may reach beyond it, to where its elements lie
  /// `local` apart. `from` has the indices along the axes before `Axis`.
  template <std::size_t Axis = 0>
  KOKKOS_FUNCTION void bring(staging<Exec>& stage, const Member& team, const Tile& box,
                             const Indices& local, const In* from, In* to) const {
    const Span along = box[Axis];
    if constexpr (Axis == columns) {
      bring_row(stage, team, from, along, to);
    } else {
      if (Axis == rows && within(box, rows) && within(box, columns)) {
        stage.get(to, from + along.begin * grid.in_stride[rows] + box[columns].begin,
                  rows_of(box, grid.in_stride));
        return;
      }
      for (std::ptrdiff_t at = along.begin; at < along.end; ++at, to += local[Axis]) {
        const bool outside = at < 0 || at >= grid.extent[Axis];
        if (outside && grid.boundary == Boundary::constant)
          fill(team, to, local[Axis]);
        else
          bring<Axis + 1>(stage, team, box, local,
                          from + wrap(at, grid.extent[Axis]) * grid.in_stride[Axis], to);
      }
    }
  }

  [[nodiscard]] KOKKOS_FUNCTION bool within(const Tile& box, std::size_t axis) const {
    return box[axis].begin >= 0 && box[axis].end <= grid.extent[axis];
  }

  /// A row that may reach beyond the grid, in pieces.
  KOKKOS_FUNCTION void bring_row(staging<Exec>& stage, const Member& team, const In* row,
                                 const Span& along, In* to) const {
    const std::ptrdiff_t extent = grid.extent[columns];
    for (std::ptrdiff_t c = along.begin; c < along.end;) {
      const bool outside = c < 0 || c >= extent;
      std::ptrdiff_t length = along.end - c;
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
};

}  // namespace heddle::inline v0::kernel::impl
