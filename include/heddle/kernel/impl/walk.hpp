// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// The elements of several Views of equal shape as rows, the longest that all of the Views allow:
/// dense Views of the same layout are one single row, whatever their rank. For map and reduce.

#include <algorithm>
#include <array>
#include <cstddef>
#include <utility>

#include <Kokkos_Core.hpp>

#include <heddle/core/contract.hpp>
#include <heddle/core/text.hpp>
#include <heddle/kernel/view.hpp>

// The iterations of the loop that follows do not depend on one another. The compiler cannot know
// that where the output may be an input, and would fall back to one element at a time.
#if defined(__GNUC__) && !defined(__clang__) && !defined(__NVCC__)
#define HEDDLE_INDEPENDENT _Pragma("GCC ivdep")
#else
#define HEDDLE_INDEPENDENT
#endif

namespace heddle::inline v0::kernel::impl {

/// The start of a row in each of the Views, in elements.
template <std::size_t Views>
struct RowStart {
  std::ptrdiff_t at[Views];
};

/// Rows x columns elements in each of `Views` Views. The columns run along the axis that is
/// adjacent in memory of the first View.
template <std::size_t Views>
struct Walk {
  static constexpr int most_axes = 8;

  std::size_t rows = 1, columns = 1;
  std::ptrdiff_t step[Views] = {};  ///< from one column to the next
  int axes = 0;                     ///< the axes that count the rows, the slowest first
  std::size_t extent[most_axes] = {};
  std::ptrdiff_t stride[most_axes][Views] = {};

  [[nodiscard]] KOKKOS_FUNCTION std::size_t size() const { return rows * columns; }

  /// True when the elements of a row are adjacent in every View.
  [[nodiscard]] KOKKOS_FUNCTION bool adjacent() const {
    bool all = true;
    for (std::size_t view = 0; view < Views; ++view) all = all && step[view] == 1;
    return all;
  }

  /// Returns the start of row `index`. With one axis of rows it needs no division, which is slow on
  /// devices; with two axes it needs one.
  [[nodiscard]] KOKKOS_FUNCTION RowStart<Views> row(std::size_t index) const {
    RowStart<Views> start{};
    const auto go = [&](int axis, std::size_t along) {
      for (std::size_t view = 0; view < Views; ++view)
        start.at[view] += static_cast<std::ptrdiff_t>(along) * stride[axis][view];
    };
    for (int axis = axes - 1; axis > 0; --axis) {
      go(axis, index % extent[axis]);
      index /= extent[axis];
    }
    if (axes > 0) go(0, index);
    return start;
  }
};

/// The walk over `first` and `others`. @throws contract_error where their extents differ.
template <class First, class... Others>
[[nodiscard]] Walk<1 + sizeof...(Others)> make_walk(const char* where, const First& first,
                                                    const Others&... others) {
  constexpr std::size_t views = 1 + sizeof...(Others), rank = First::rank;
  static_assert(((Others::rank == rank) && ...),
                "heddle::kernel: the Views of an elementwise pattern must have the same rank");
  const auto same_shape = [&](const auto& other) {
    for (std::size_t axis = 0; axis != rank; ++axis)
      if (other.extent(axis) != first.extent(axis)) return false;
    return true;
  };
  const auto check = [&](const auto& other) {
    expects(same_shape(other), [&] {
      return ErrorInfo{where, "the Views have different shapes",
                       text(shape_text(first), " and ", shape_text(other))};
    });
  };
  static_cast<void>(check);  // without others
  (check(others), ...);

  struct Axis {
    std::size_t extent;
    std::array<std::ptrdiff_t, views> stride;
  };
  std::array<Axis, Walk<views>::most_axes> axis{};
  std::size_t count = 0;
  for (std::size_t a = 0; a != rank; ++a) {
    if (first.extent(a) == 1) continue;
    axis[count++] = {first.extent(a),
                     {static_cast<std::ptrdiff_t>(first.stride(a)),
                      static_cast<std::ptrdiff_t>(others.stride(a))...}};
  }
  // The fastest axis of the first View last; axes that follow each other in every View become one.
  for (std::size_t a = 1; a < count; ++a)
    for (std::size_t b = a; b > 0 && axis[b - 1].stride[0] < axis[b].stride[0]; --b)
      std::swap(axis[b - 1], axis[b]);
  for (std::size_t a = count; a-- > 1;) {
    bool follow = true;
    for (std::size_t view = 0; view < views; ++view)
      follow = follow && axis[a - 1].stride[view] ==
                             static_cast<std::ptrdiff_t>(axis[a].extent) * axis[a].stride[view];
    if (!follow) continue;
    axis[a - 1] = {axis[a - 1].extent * axis[a].extent, axis[a].stride};
    std::copy(axis.begin() + a + 1, axis.begin() + count, axis.begin() + a);
    --count;
  }

  Walk<views> walk;
  if (count == 0) {
    std::fill_n(walk.step, views, std::ptrdiff_t{1});
    return walk;
  }
  walk.columns = axis[count - 1].extent;
  std::copy_n(axis[count - 1].stride.begin(), views, walk.step);
  walk.axes = static_cast<int>(count) - 1;
  for (std::size_t a = 0; a + 1 < count; ++a) {
    walk.extent[a] = axis[a].extent;
    std::copy_n(axis[a].stride.begin(), views, walk.stride[a]);
    walk.rows *= axis[a].extent;
  }
  return walk;
}

}  // namespace heddle::inline v0::kernel::impl
