// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// DeviceMesh: ranks as a grid with named axes, with a communicator along each axis, or along
/// several of them, and a transport over all ranks.

#include <cstddef>
#include <initializer_list>
#include <iosfwd>
#include <map>
#include <memory>
#include <span>
#include <string_view>
#include <vector>

#include <mpi.h>

#include <heddle/comm/communicator.hpp>
#include <heddle/comm/mpi_transport.hpp>
#include <heddle/core/contract.hpp>
#include <heddle/core/index.hpp>
#include <heddle/core/linkage.hpp>
#include <heddle/layout/mesh_shape.hpp>

namespace heddle::inline v0 {

/// A MeshShape on the ranks of a communicator. Rank r of the communicator is rank r of the mesh;
/// the last axis is the fastest. Construction and destruction are collective. A mesh can be moved,
/// but not copied.
class DeviceMesh {
 public:
  /// Constructs a mesh, for example `DeviceMesh mesh(comm, {{"pipe", 2}, {"data", 2}})`. All ranks
  /// must give the same shape.
  /// @throws contract_error on every rank if the shapes differ, or if their size is not the number
  ///         of ranks of `comm`.
  DeviceMesh(MPI_Comm comm, MeshShape shape, MpiOptions options = {});
  /// Moves the mesh.
  DeviceMesh(DeviceMesh&&) noexcept;
  /// Moves the mesh.
  DeviceMesh& operator=(DeviceMesh&&) noexcept;
  /// Frees the communicators.
  ~DeviceMesh();

  /// Returns the named axes and their sizes.
  [[nodiscard]] const MeshShape& shape() const noexcept { return m_shape; }
  /// Returns this process's rank in the mesh.
  [[nodiscard]] Rank rank() const noexcept { return m_all.rank(); }
  /// Returns the number of ranks in the mesh.
  [[nodiscard]] int size() const noexcept { return m_all.size(); }

  /// Returns this rank's position on the axis `name`. @throws contract_error if there is no such
  /// axis.
  [[nodiscard]] int coordinate(std::string_view name) const;

  /// Returns the communicator of the ranks that differ from this one only in their coordinate on
  /// the axis `name`. They are ordered by that coordinate.
  /// @throws contract_error if there is no such axis.
  [[nodiscard]] const Communicator& operator[](std::string_view name) const {
    return m_lines[m_shape.axis(name)];
  }

  /// Returns the ranks that differ from this one only on the axes `names`: a line over several
  /// axes, such as `mesh[{"data", "ring"}]`. They are in the order of their numbers in the mesh,
  /// in whatever order the axes are named, so the axis that is last in the mesh is the fastest.
  ///
  /// The first call for a set of several axes makes the communicator, so all ranks of the mesh make
  /// it together. The mesh keeps the communicator for later calls.
  /// @throws contract_error if there is no such axis, if one is named twice, or if none is named.
  ///         At the contract level "communication", also if the ranks name different axes.
  [[nodiscard]] const Communicator& operator[](std::span<const std::string_view> names) const {
    return line_over(names, contract_level);
  }
  /// Returns the line over the axes `names`, as above.
  [[nodiscard]] const Communicator& operator[](
      std::initializer_list<std::string_view> names) const {
    return (*this)[std::span<const std::string_view>(names.begin(), names.size())];
  }

  /// All ranks of the mesh.
  [[nodiscard]] const Communicator& all() const noexcept { return m_all; }

  /// Returns the transport for messages between all ranks of the mesh. Only one user at a time may
  /// use it, such as an Executor or measure_machine().
  [[nodiscard]] MpiTransport& transport() noexcept { return *m_transport; }

  friend std::ostream& operator<<(std::ostream& out, const DeviceMesh& mesh);

 private:
  /// Returns the line over the axes `names`. The level is the program's.
  [[nodiscard]] const Communicator& line_over(std::span<const std::string_view> names,
                                              ContractLevel level) const;

  /// Returns the numbers of the axes, ascending.
  [[nodiscard]] std::vector<std::size_t> axes_of(std::span<const std::string_view> names) const;

  /// Compares the shapes of all ranks with that of rank 0.
  void agree() const;

  MeshShape m_shape;
  Communicator m_all;
  std::vector<Communicator> m_lines;  ///< one per axis
  /// Lines over several axes, by the numbers of the axes.
  mutable std::map<std::vector<std::size_t>, Communicator> m_wide_lines;
  std::unique_ptr<MpiTransport> m_transport;
};

}  // namespace heddle::inline v0

#if HEDDLE_DEFINES_COMM
#include <heddle/comm/device_mesh.ipp>
#endif
