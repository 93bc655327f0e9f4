// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// Definitions of mesh_shape.hpp.

#include <cstdint>
#include <initializer_list>
#include <limits>
#include <ostream>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <heddle/core/contract.hpp>
#include <heddle/core/index.hpp>
#include <heddle/core/linkage.hpp>
#include <heddle/core/text.hpp>
#include <heddle/layout/mesh_shape.hpp>

namespace heddle::inline v0 {

HEDDLE_INLINE MeshShape::MeshShape(std::initializer_list<MeshShape::Axis> axes)
    : MeshShape(std::vector<MeshShape::Axis>(axes)) {}

HEDDLE_INLINE MeshShape::MeshShape(std::vector<MeshShape::Axis> axes) : m_axes(std::move(axes)) {
  const auto fail = [](const char* what, std::string why) {
    return ErrorInfo{"heddle::MeshShape", what, std::move(why)};
  };
  expects(!m_axes.empty(), [&] { return fail("a mesh needs at least one axis", {}); });
  std::int64_t ranks = 1;
  for (std::size_t i = 0; i < m_axes.size(); ++i) {
    const auto& [name, size] = m_axes[i];
    expects(size >= 1, [&] {
      return fail("an axis needs at least one rank", text("axis '", name, "' has size ", size));
    });
    expects(!name.empty(), [&] { return fail("an axis has no name", text("axis ", i)); });
    for (std::size_t j = 0; j < i; ++j)
      expects(m_axes[j].name != name,
              [&] { return fail("two axes have the same name", text("'", name, "'")); });
    ranks *= size;
    expects(ranks <= std::numeric_limits<int>::max(), [&] {
      return fail("the number of ranks of the mesh does not fit in an int",
                  text("axes up to '", name, "' have ", ranks));
    });
  }
}

HEDDLE_INLINE MeshShape MeshShape::least_surface(int ranks, const std::vector<std::string>& names,
                                                 const std::vector<std::int64_t>& sizes) {
  constexpr const char* where = "heddle::MeshShape::least_surface";
  expects(ranks >= 1, [&] {
    return ErrorInfo{where, "a mesh needs at least one rank", text("ranks = ", ranks)};
  });
  expects(names.size() == sizes.size(), [&] {
    return ErrorInfo{where, "each axis needs one size",
                     text(sizes.size(), " sizes, ", names.size(), " names")};
  });
  std::vector<MeshShape::Axis> axes, best;
  for (std::size_t i = 0; i < names.size(); ++i) {
    expects(sizes[i] >= 0, [&] {
      return ErrorInfo{where, "a size must be at least 0",
                       text("axis '", names[i], "': ", sizes[i])};
    });
    axes.push_back({names[i], 1});
  }
  if (axes.empty()) return MeshShape(axes);  // which says so
  double least = 0;
  bool least_empty = false;
  const auto judge = [&] {
    double surface = 0;
    bool empty = false;
    for (std::size_t i = 0; i < axes.size(); ++i) {
      double face = axes[i].size - 1;
      for (std::size_t j = 0; j < axes.size(); ++j)
        if (j != i) face *= static_cast<double>(sizes[j]);
      surface += face;
      empty = empty || axes[i].size > sizes[i];
    }
    if (!best.empty() && std::pair(empty, surface) >= std::pair(least_empty, least)) return;
    least = surface;
    least_empty = empty;
    best = axes;
  };
  const auto divide = [&](const auto& self, std::size_t axis, int left) -> void {
    if (axis + 1 == axes.size()) {
      axes[axis].size = left;
      return judge();
    }
    for (int size = left; size >= 1; --size)
      if (left % size == 0) {
        axes[axis].size = size;
        self(self, axis + 1, left / size);
      }
  };
  divide(divide, 0, ranks);
  return MeshShape(std::move(best));
}

HEDDLE_INLINE std::size_t MeshShape::axis(std::string_view name) const {
  std::string known;
  for (std::size_t i = 0; i < m_axes.size(); ++i) {
    if (m_axes[i].name == name) return i;
    known += text(i == 0 ? "" : ", ", m_axes[i].name);
  }
  throw contract_error(
      {"heddle::MeshShape::axis", text("no axis '", name, "'"), text("the mesh has ", known)});
}

HEDDLE_INLINE Rank MeshShape::rank(const std::vector<int>& coordinates) const {
  expects(coordinates.size() == m_axes.size(), [&] {
    return ErrorInfo{"heddle::MeshShape::rank", "each axis needs one coordinate",
                     text(coordinates.size(), " given, ", m_axes.size(), " axes")};
  });
  int number = 0;
  for (std::size_t i = 0; i < m_axes.size(); ++i) {
    expects(coordinates[i] >= 0 && coordinates[i] < m_axes[i].size, [&] {
      return ErrorInfo{
          "heddle::MeshShape::rank", "a coordinate lies outside of its axis",
          text("axis '", m_axes[i].name, "' of size ", m_axes[i].size, ": ", coordinates[i])};
    });
    number = number * m_axes[i].size + coordinates[i];
  }
  return Rank{number};
}

HEDDLE_INLINE std::ostream& operator<<(std::ostream& out, const MeshShape& shape) {
  for (std::size_t i = 0; i < shape.m_axes.size(); ++i)
    out << (i == 0 ? "" : " x ") << shape.m_axes[i].name << "=" << shape.m_axes[i].size;
  return out;
}

}  // namespace heddle::inline v0
