// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// The neighbourhoods that a stencil's function sees, u(-1, 0), one form for each place where the
/// elements may lie. Inside the pattern the axes of a grid stand in the order of memory, whatever
/// the layout: the planes along the first lie farthest apart, the columns along the last are
/// adjacent.

#include <concepts>
#include <cstddef>
#include <utility>

#include <Kokkos_Core.hpp>

namespace heddle::inline v0::kernel {

/// The values of a neighbourhood beyond the edge of the grid.
enum class Boundary {
  interior,  ///< nothing: only points whose whole neighbourhood lies in the grid are computed
  constant,  ///< one value everywhere
  periodic,  ///< the other side of the grid
};

namespace impl {

/// The axes of a grid of this rank; one of rank 1 is a single plane.
template <std::size_t Rank>
inline constexpr std::size_t axes_of = Rank < 2 ? 2 : Rank;

/// A value for each axis, in the order of memory.
template <class T, std::size_t Axes>
using PerAxis = Kokkos::Array<T, Axes>;

/// The values of the axes of a View; `spare` is that of the plane of a grid of rank 1.
template <bool Left, std::size_t Rank, class T>
KOKKOS_INLINE_FUNCTION PerAxis<T, axes_of<Rank>> in_memory_order(const T (&axis)[Rank], T spare) {
  const auto sort = [&]<std::size_t... A>(std::index_sequence<A...>) {
    return PerAxis<T, sizeof...(A)>{axis[Left ? Rank - 1 - A : A]...};
  };
  if constexpr (Rank == 1)
    return {spare, axis[0]};
  else
    return sort(std::make_index_sequence<Rank>{});
}

/// The distances that the user gave, by axis.
template <std::size_t Rank, bool Left, std::convertible_to<std::ptrdiff_t>... Distance>
requires(sizeof...(Distance) == Rank)
    KOKKOS_INLINE_FUNCTION PerAxis<std::ptrdiff_t, axes_of<Rank>> distances(Distance... by) {
  const std::ptrdiff_t axis[Rank] = {static_cast<std::ptrdiff_t>(by)...};
  return in_memory_order<Left>(axis, std::ptrdiff_t{0});
}

/// Elements from the origin to the one at `at`. No loop, which would have to be unrolled before the
/// loop over columns around it can be vectorised.
template <std::size_t Axes>
KOKKOS_INLINE_FUNCTION std::ptrdiff_t offset(const PerAxis<std::ptrdiff_t, Axes>& at,
                                             const PerAxis<std::ptrdiff_t, Axes>& stride) {
  const auto sum = [&]<std::size_t... A>(std::index_sequence<A...>) {
    return ((at[A] * stride[A]) + ... + at[Axes - 1]);
  };
  return sum(std::make_index_sequence<Axes - 1>{});
}

/// `at` in [0, size), any number of times around.
KOKKOS_INLINE_FUNCTION std::ptrdiff_t wrap(std::ptrdiff_t at, std::ptrdiff_t size) {
  const std::ptrdiff_t rest = at % size;
  return rest < 0 ? rest + size : rest;
}

/// In a View, far from its edges.
template <class T, std::size_t Rank, bool Left>
struct PlainWindow {
  const T* centre;
  PerAxis<std::ptrdiff_t, axes_of<Rank>> stride;

  /// The neighbour at these distances, one for each axis of the View.
  template <class... Distance>
  KOKKOS_INLINE_FUNCTION T operator()(Distance... by) const {
    return centre[offset(distances<Rank, Left>(by...), stride)];
  }
};

/// In a tile whose planes lie in a ring of buffers.
template <class T, std::size_t Rank, bool Left>
struct RingWindow {
  const T* ring;                                  // the buffer of slot 0
  PerAxis<std::ptrdiff_t, axes_of<Rank>> stride;  // that of planes: from slot to slot
  std::ptrdiff_t slot, slots;
  std::ptrdiff_t centre;  // in its buffer

  template <class... Distance>
  KOKKOS_INLINE_FUNCTION T operator()(Distance... by) const {
    auto at = distances<Rank, Left>(by...);
    at[0] += slot;
    at[0] += at[0] < 0 ? slots : 0;
    at[0] -= at[0] >= slots ? slots : 0;
    return ring[offset(at, stride) + centre];
  }
};

/// In a View, at its edges: every distance is looked at.
template <class T, std::size_t Rank, bool Left>
struct EdgeWindow {
  const T* data;
  PerAxis<std::ptrdiff_t, axes_of<Rank>> stride, extent, centre;
  Boundary boundary;
  T outside;

  template <class... Distance>
  KOKKOS_INLINE_FUNCTION T operator()(Distance... by) const {
    auto at = distances<Rank, Left>(by...);
    for (std::size_t a = 0; a < axes_of<Rank>; ++a) {
      at[a] += centre[a];
      if (0 <= at[a] && at[a] < extent[a]) continue;
      if (boundary == Boundary::constant) return outside;
      at[a] = wrap(at[a], extent[a]);
    }
    return data[offset(at, stride)];
  }
};

}  // namespace impl
}  // namespace heddle::inline v0::kernel
