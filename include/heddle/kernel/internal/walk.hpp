// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// The elements of several Views of equal shape as rows, the longest that all of the Views allow:
/// dense Views of the same layout are one single row, whatever their rank. For map and reduce.

#include <cstddef>

#include <Kokkos_Core.hpp>

#include <heddle/core/linkage.hpp>
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

/// A position in a Walk that moves on by a fixed number of elements. It divides only at the start.
template <std::size_t Views>
class WalkCursor {
 public:
  /// Constructs the position of element `first`, which moves by `distance` elements.
  KOKKOS_FUNCTION WalkCursor(const Walk<Views>& walk, std::size_t first, std::size_t distance)
      : m_walk(walk), m_column(first % walk.columns), m_distance(distance % walk.columns) {
    std::size_t row = first / walk.columns, rows = distance / walk.columns;
    for (int axis = walk.axes - 1; axis >= 0; --axis) {
      m_at[axis] = row % walk.extent[axis];
      m_along[axis] = rows % walk.extent[axis];
      row /= walk.extent[axis];
      rows /= walk.extent[axis];
    }
  }

  [[nodiscard]] KOKKOS_FUNCTION std::size_t column() const { return m_column; }
  /// Returns the start of the row of this position.
  [[nodiscard]] KOKKOS_FUNCTION RowStart<Views> row() const {
    RowStart<Views> start{};
    for (int axis = 0; axis < m_walk.axes; ++axis)
      for (std::size_t view = 0; view < Views; ++view)
        start.at[view] += static_cast<std::ptrdiff_t>(m_at[axis]) * m_walk.stride[axis][view];
    return start;
  }
  /// Moves on. Beyond the last element the position has no meaning.
  KOKKOS_FUNCTION void next() {
    std::size_t carry = add(m_column, m_distance, m_walk.columns);
    for (int axis = m_walk.axes - 1; axis >= 0; --axis)
      carry = add(m_at[axis], m_along[axis] + carry, m_walk.extent[axis]);
  }

 private:
  /// digit += more, of which both are at most `base`. Returns the carry.
  KOKKOS_FUNCTION static std::size_t add(std::size_t& digit, std::size_t more, std::size_t base) {
    digit += more;
    if (digit < base) return 0;
    digit -= base;
    return 1;
  }

  const Walk<Views>& m_walk;
  std::size_t m_column, m_distance;
  std::size_t m_at[Walk<Views>::most_axes], m_along[Walk<Views>::most_axes];
};

/// The shape of a View of any type, and its strides in elements.
struct ViewShape {
  std::size_t rank;
  std::size_t extent[8];
  std::ptrdiff_t stride[8];
};

/// The members of a Walk over any number of Views.
struct AnyWalk {
  std::size_t& rows;
  std::size_t& columns;
  std::ptrdiff_t* step;
  int& axes;
  std::size_t* extent;
  std::ptrdiff_t* stride;  ///< [axis][view]
};

/// Sets the members of a Walk over `views` Views. @throws contract_error where their extents
/// differ.
void set_walk(const char* where, const ViewShape* shapes, std::size_t views, const AnyWalk& walk);

template <class View>
[[nodiscard]] ViewShape shape_of(const View& view) {
  ViewShape shape{View::rank, {}, {}};
  for (std::size_t axis = 0; axis != View::rank; ++axis) {
    shape.extent[axis] = view.extent(axis);
    shape.stride[axis] = static_cast<std::ptrdiff_t>(view.stride(axis));
  }
  return shape;
}

/// The walk over `first` and `others`. @throws contract_error where their extents differ.
template <class First, class... Others>
[[nodiscard]] Walk<1 + sizeof...(Others)> make_walk(const char* where, const First& first,
                                                    const Others&... others) {
  static_assert(((Others::rank == First::rank) && ...),
                "heddle::kernel: the Views of an elementwise pattern must have the same rank");
  const ViewShape shapes[] = {shape_of(first), shape_of(others)...};
  Walk<1 + sizeof...(Others)> walk;
  set_walk(where, shapes, 1 + sizeof...(Others),
           {walk.rows, walk.columns, walk.step, walk.axes, walk.extent, walk.stride[0]});
  return walk;
}

}  // namespace heddle::inline v0::kernel::impl

#if HEDDLE_DEFINES_KERNEL
#include <heddle/kernel/internal/walk.ipp>
#endif
