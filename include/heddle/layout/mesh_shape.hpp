// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// MeshShape: a grid of ranks with named axes, {"pipe", 2} x {"data", 2}. It does arithmetic only.
/// The communicators of a mesh are in comm/.

#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <iosfwd>
#include <string>
#include <string_view>
#include <vector>

#include <heddle/core/index.hpp>
#include <heddle/core/linkage.hpp>

namespace heddle::inline v0 {

/// The shape of a mesh of ranks. Ranks are numbered with the last axis fastest.
class MeshShape {
 public:
  /// A named axis of a mesh.
  struct Axis {
    std::string name;  ///< "pipe", "data", ...; unique in its mesh
    int size = 1;      ///< number of ranks along the axis
    friend bool operator==(const Axis&, const Axis&) = default;
  };

  /// Constructs a mesh from its axes, the slowest first.
  /// @throws contract_error if there are no axes, a size is below 1, a name is empty or repeated,
  ///         or the number of ranks does not fit in an int.
  MeshShape(std::initializer_list<Axis> axes);
  /// Constructs a mesh from its axes, as above.
  explicit MeshShape(std::vector<Axis> axes);

  /// Returns the mesh of `ranks` ranks that divides a block of `sizes` elements with the least
  /// surface between the ranks: `MeshShape::least_surface(8, {"y", "x"}, {rows, columns})`. Axis i
  /// divides dimension i. No rank is left without elements if a mesh permits it. Among equal
  /// meshes, the one with more ranks along the first axes is returned, because faces between them
  /// lie in memory in one run.
  /// @throws contract_error if `ranks` is below 1, a size is below 0, or the numbers of names and
  ///         sizes differ; and as the constructor does.
  [[nodiscard]] static MeshShape least_surface(int ranks, const std::vector<std::string>& names,
                                               const std::vector<std::int64_t>& sizes);

  /// The axes, the slowest first.
  [[nodiscard]] const std::vector<Axis>& axes() const noexcept { return m_axes; }

  /// Number of ranks in the mesh.
  [[nodiscard]] int size() const noexcept {
    int product = 1;
    for (const Axis& axis : m_axes) product *= axis.size;
    return product;
  }

  /// The number of the axis `name`.
  /// @throws contract_error if there is no such axis. The message lists the axes of the mesh.
  [[nodiscard]] std::size_t axis(std::string_view name) const;

  /// Returns true if an axis has this name.
  [[nodiscard]] bool has(std::string_view name) const noexcept {
    for (const Axis& axis : m_axes)
      if (axis.name == name) return true;
    return false;
  }

  /// Number of ranks along the axis `name`. @throws contract_error if there is no such axis.
  [[nodiscard]] int size(std::string_view name) const { return m_axes[axis(name)].size; }

  /// The coordinate of `rank` on axis number `axis`.
  [[nodiscard]] int coordinate(Rank rank, std::size_t axis) const {
    return static_cast<int>(+rank) / stride(axis) % m_axes[axis].size;
  }

  /// The rank at `coordinates`, one for each axis.
  /// @throws contract_error if their number is wrong, or one lies outside of its axis.
  [[nodiscard]] Rank rank(const std::vector<int>& coordinates) const;

  /// The rank with coordinate `coordinate` on axis number `axis`, and the coordinates of `rank` on
  /// all other axes.
  [[nodiscard]] Rank moved(Rank rank, std::size_t axis, int coordinate) const {
    return Rank{static_cast<int>(+rank) +
                (coordinate - this->coordinate(rank, axis)) * stride(axis)};
  }

  friend bool operator==(const MeshShape&, const MeshShape&) = default;

  /// Prints "pipe=2 x data=2".
  friend std::ostream& operator<<(std::ostream& out, const MeshShape& shape);

 private:
  [[nodiscard]] int stride(std::size_t axis) const noexcept {
    int product = 1;
    for (std::size_t i = axis + 1; i < m_axes.size(); ++i) product *= m_axes[i].size;
    return product;
  }

  std::vector<Axis> m_axes;
};

}  // namespace heddle::inline v0

#if HEDDLE_DEFINES_LAYOUT
#include <heddle/layout/mesh_shape.ipp>
#endif
