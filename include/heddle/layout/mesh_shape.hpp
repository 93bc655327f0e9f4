// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// MeshShape: ranks as a grid with named axes, {"pipe", 2} x {"data", 2}. Arithmetic only; the
/// communicators of a mesh live in comm/.

#include <initializer_list>
#include <iosfwd>
#include <string>
#include <string_view>
#include <vector>

#include <heddle/core/index.hpp>
#include <heddle/core/linkage.hpp>

namespace heddle::inline v0 {

/// One named dimension of a mesh.
struct MeshAxis {
  std::string name;  ///< "pipe", "data", ...; unique in its mesh
  int size = 1;      ///< number of ranks along it
  friend bool operator==(const MeshAxis&, const MeshAxis&) = default;
};

/// The shape of a device mesh. Ranks are numbered with the last axis fastest.
class MeshShape {
 public:
  /// @throws contract_error for no axes, a size below 1, an empty or repeated name, or more ranks
  /// than an int counts.
  MeshShape(std::initializer_list<MeshAxis> axes) : MeshShape(std::vector<MeshAxis>(axes)) {}
  /// As above.
  explicit MeshShape(std::vector<MeshAxis> axes);

  /// The axes, the first varying slowest.
  [[nodiscard]] const std::vector<MeshAxis>& axes() const noexcept { return m_axes; }

  /// Number of ranks in the mesh.
  [[nodiscard]] int size() const noexcept {
    int product = 1;
    for (const MeshAxis& axis : m_axes) product *= axis.size;
    return product;
  }

  /// Number of the axis `name`. @throws contract_error where there is none; it lists those there
  /// are.
  [[nodiscard]] std::size_t axis(std::string_view name) const;

  /// True where an axis has this name.
  [[nodiscard]] bool has(std::string_view name) const noexcept {
    for (const MeshAxis& axis : m_axes)
      if (axis.name == name) return true;
    return false;
  }

  /// Size of the axis `name`.
  [[nodiscard]] int size(std::string_view name) const { return m_axes[axis(name)].size; }

  /// Coordinate of `rank` on axis number `axis`.
  [[nodiscard]] int coordinate(Rank rank, std::size_t axis) const {
    return static_cast<int>(+rank) / stride(axis) % m_axes[axis].size;
  }

  /// The rank at `coordinates`, one per axis.
  [[nodiscard]] Rank rank(const std::vector<int>& coordinates) const;

  /// The rank whose coordinate on `axis` is `coordinate` and that shares all others with `rank`.
  [[nodiscard]] Rank moved(Rank rank, std::size_t axis, int coordinate) const {
    return Rank{static_cast<int>(+rank) +
                (coordinate - this->coordinate(rank, axis)) * stride(axis)};
  }

  friend bool operator==(const MeshShape&, const MeshShape&) = default;

  friend std::ostream& operator<<(std::ostream& out, const MeshShape& shape);

 private:
  [[nodiscard]] int stride(std::size_t axis) const noexcept {
    int product = 1;
    for (std::size_t i = axis + 1; i < m_axes.size(); ++i) product *= m_axes[i].size;
    return product;
  }

  std::vector<MeshAxis> m_axes;
};

}  // namespace heddle::inline v0

#if HEDDLE_HEADER_ONLY
#include <heddle/layout/mesh_shape.ipp>
#endif
