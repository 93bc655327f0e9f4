// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// The neighbourhoods that a stencil's function sees, u(-1, 0), one form for each place where the
/// elements may lie. A grid of rank 1 to 3 is planes of rows of columns, columns adjacent in
/// memory: rank 2 has one row in each plane, rank 1 one row in all.

#include <concepts>
#include <cstddef>

#include <Kokkos_Core.hpp>

namespace heddle::inline v0::kernel {

/// What a neighbourhood holds beyond the edge of the grid.
enum class Boundary {
  interior,  ///< nothing: only points whose whole neighbourhood lies in the grid are computed
  constant,  ///< one value everywhere
  periodic,  ///< the other side of the grid
};

namespace impl {

/// Three numbers, along planes, rows and columns.
template <class T>
struct Triple {
  T planes, rows, columns;
};

/// The axes of a View as planes, rows and columns: by the layout, since columns are adjacent.
/// `spare` stands for the axes that a grid of lower rank does not have.
template <int Rank, bool Left, class T>
KOKKOS_INLINE_FUNCTION Triple<T> in_memory_order(const T (&axis)[Rank], T spare) {
  if constexpr (Rank == 1) return {spare, spare, axis[0]};
  if constexpr (Rank == 2) return {axis[Left ? 1 : 0], spare, axis[Left ? 0 : 1]};
  if constexpr (Rank == 3) return {axis[Left ? 2 : 0], axis[1], axis[Left ? 0 : 2]};
}

/// The distances that the user gave, by axis.
template <int Rank, bool Left, std::convertible_to<std::ptrdiff_t>... Distance>
requires(sizeof...(Distance) ==
         Rank) KOKKOS_INLINE_FUNCTION Triple<std::ptrdiff_t> distances(Distance... by) {
  const std::ptrdiff_t axis[Rank] = {static_cast<std::ptrdiff_t>(by)...};
  return in_memory_order<Rank, Left>(axis, std::ptrdiff_t{0});
}

/// In a View, far from its edges.
template <class T, int Rank, bool Left>
struct PlainWindow {
  const T* centre;
  std::ptrdiff_t plane, row;  // elements from one to the next

  /// The neighbour at these distances, one for each axis of the View.
  template <class... Distance>
  KOKKOS_INLINE_FUNCTION T operator()(Distance... by) const {
    const auto d = distances<Rank, Left>(by...);
    return centre[d.planes * plane + d.rows * row + d.columns];
  }
};

/// In a tile whose planes lie in a ring of buffers.
template <class T, int Rank, bool Left>
struct RingWindow {
  const T* ring;              // the buffer of slot 0
  std::ptrdiff_t plane, row;  // elements of a buffer, of a row in it
  std::ptrdiff_t slot, slots;
  std::ptrdiff_t centre;  // in its buffer

  template <class... Distance>
  KOKKOS_INLINE_FUNCTION T operator()(Distance... by) const {
    const auto d = distances<Rank, Left>(by...);
    std::ptrdiff_t there = slot + d.planes;
    there += there < 0 ? slots : 0;
    there -= there >= slots ? slots : 0;
    return ring[there * plane + d.rows * row + d.columns + centre];
  }
};

/// In a View, at its edges: every distance is looked at.
template <class T, int Rank, bool Left>
struct EdgeWindow {
  const T* data;
  Triple<std::ptrdiff_t> stride, extent, centre;
  Boundary boundary;
  T outside;

  template <class... Distance>
  KOKKOS_INLINE_FUNCTION T operator()(Distance... by) const {
    const auto d = distances<Rank, Left>(by...);
    Triple<std::ptrdiff_t> at{centre.planes + d.planes, centre.rows + d.rows,
                              centre.columns + d.columns};
    const bool inside = within(at.planes, extent.planes) && within(at.rows, extent.rows) &&
                        within(at.columns, extent.columns);
    if (!inside && boundary == Boundary::constant) return outside;
    if (!inside) at = wrapped(at);
    return data[at.planes * stride.planes + at.rows * stride.rows + at.columns];
  }

 private:
  KOKKOS_INLINE_FUNCTION static bool within(std::ptrdiff_t at, std::ptrdiff_t size) {
    return 0 <= at && at < size;
  }
  KOKKOS_INLINE_FUNCTION Triple<std::ptrdiff_t> wrapped(const Triple<std::ptrdiff_t>& at) const {
    return {wrap(at.planes, extent.planes), wrap(at.rows, extent.rows),
            wrap(at.columns, extent.columns)};
  }

 public:
  /// `at` in [0, size), any number of times around.
  KOKKOS_INLINE_FUNCTION static std::ptrdiff_t wrap(std::ptrdiff_t at, std::ptrdiff_t size) {
    const std::ptrdiff_t rest = at % size;
    return rest < 0 ? rest + size : rest;
  }
};

}  // namespace impl
}  // namespace heddle::inline v0::kernel
