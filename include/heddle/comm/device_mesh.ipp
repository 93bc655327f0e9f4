// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// Definitions of device_mesh.hpp.

#include <algorithm>
#include <cstddef>
#include <memory>
#include <ostream>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <mpi.h>

#include <heddle/comm/agreement.hpp>
#include <heddle/comm/check.hpp>
#include <heddle/comm/communicator.hpp>
#include <heddle/comm/device_mesh.hpp>
#include <heddle/comm/mpi_transport.hpp>
#include <heddle/core/contract.hpp>
#include <heddle/core/index.hpp>
#include <heddle/core/linkage.hpp>
#include <heddle/core/text.hpp>
#include <heddle/layout/mesh_shape.hpp>

namespace heddle::inline v0 {

HEDDLE_FULL_INLINE DeviceMesh::DeviceMesh(MPI_Comm comm, MeshShape shape, MpiOptions options)
    : m_shape(std::move(shape)), m_all(comm) {
  agree();
  expects(m_shape.size() == m_all.size(), [&] {
    return ErrorInfo{
        "heddle::DeviceMesh", "the mesh does not fit the ranks",
        text(m_shape, " makes ", m_shape.size(), " ranks, the communicator has ", m_all.size()),
        text("start it with mpiexec -n ", m_shape.size(), ", or choose sizes whose product is ",
             m_all.size())};
  });
  m_lines.reserve(m_shape.axes().size());
  for (std::size_t axis = 0; axis < m_shape.axes().size(); ++axis) {
    // A line is named by its member with coordinate 0, and ordered by coordinate.
    const Rank first = m_shape.moved(rank(), axis, 0);
    m_lines.push_back(m_all.split(static_cast<int>(first.value), m_shape.coordinate(rank(), axis)));
  }
  m_transport = std::make_unique<MpiTransport>(m_all.get(), options);
}

HEDDLE_FULL_INLINE DeviceMesh::DeviceMesh(DeviceMesh&&) noexcept = default;
HEDDLE_FULL_INLINE DeviceMesh& DeviceMesh::operator=(DeviceMesh&&) noexcept = default;
HEDDLE_FULL_INLINE DeviceMesh::~DeviceMesh() = default;

HEDDLE_FULL_INLINE int DeviceMesh::coordinate(std::string_view name) const {
  return m_shape.coordinate(rank(), m_shape.axis(name));
}

HEDDLE_FULL_INLINE const Communicator& DeviceMesh::line_over(
    std::span<const std::string_view> names, ContractLevel level) const {
  const std::vector<std::size_t> axes = axes_of(names);
  if (axes.size() == 1) return m_lines[axes.front()];
  if (const auto found = m_wide_lines.find(axes); found != m_wide_lines.end()) return found->second;
  Rank first = rank();  // the member with coordinate 0 on all of the axes; it names the line
  std::string described;
  for (const std::size_t axis : axes) {
    first = m_shape.moved(first, axis, 0);
    described += (described.empty() ? "" : ", ") + m_shape.axes()[axis].name;
  }
  impl::check_agreement(
      m_all,
      [&] {
        return impl::CollectiveCall{"heddle::DeviceMesh::operator[]", {{"axes", described}}};
      },
      level);
  return m_wide_lines
      .emplace(axes, m_all.split(static_cast<int>(first.value), static_cast<int>(rank().value)))
      .first->second;
}

HEDDLE_FULL_INLINE std::ostream& operator<<(std::ostream& out, const DeviceMesh& mesh) {
  out << "device mesh " << mesh.m_shape << ", rank " << mesh.rank() << " at (";
  const std::vector<MeshShape::Axis>& axes = mesh.m_shape.axes();
  for (std::size_t axis = 0; axis < axes.size(); ++axis)
    out << (axis == 0 ? "" : ", ") << axes[axis].name << " "
        << mesh.m_shape.coordinate(mesh.rank(), axis);
  return out << ")";
}

HEDDLE_FULL_INLINE std::vector<std::size_t> DeviceMesh::axes_of(
    std::span<const std::string_view> names) const {
  constexpr const char* where = "heddle::DeviceMesh::operator[]";
  expects(!names.empty(), [&] {
    return ErrorInfo{where, "no axis is named", text("the mesh has ", m_shape),
                     "name at least one of its axes"};
  });
  std::vector<std::size_t> axes;
  for (const std::string_view name : names) {
    axes.push_back(m_shape.axis(name));
    expects(std::count(axes.begin(), axes.end(), axes.back()) == 1, [&] {
      return ErrorInfo{where, text("the axis '", name, "' is named twice"),
                       text("the mesh has ", m_shape), "name each axis once"};
    });
  }
  std::sort(axes.begin(), axes.end());
  return axes;
}

HEDDLE_FULL_INLINE void DeviceMesh::agree() const {
  constexpr const char* where = "heddle::DeviceMesh";
  const std::string mine = text(m_shape);
  std::string first = mine;
  auto length = static_cast<int>(mine.size());
  check(MPI_Bcast(&length, 1, MPI_INT, 0, m_all.get()), where);
  first.resize(static_cast<std::size_t>(length));
  check(MPI_Bcast(first.data(), length, MPI_CHAR, 0, m_all.get()), where);
  int differs = mine == first ? size() : static_cast<int>(rank().value);
  check(MPI_Allreduce(MPI_IN_PLACE, &differs, 1, MPI_INT, MPI_MIN, m_all.get()), where);
  expects(differs == size(), [&] {
    return ErrorInfo{where, "the ranks do not have the same mesh",
                     text("rank ", differs, " differs from rank 0, which has ", first),
                     "give every rank the same axes and sizes"};
  });
}

}  // namespace heddle::inline v0
