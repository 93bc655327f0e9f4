// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// Communicator: an MPI communicator that Heddle creates and frees. The caller's communicator is
/// only duplicated and never used for messages, so messages of Heddle and of the caller cannot be
/// confused.

#include <memory>
#include <ostream>
#include <typeindex>
#include <utility>
#include <vector>

#include <mpi.h>

#include <heddle/comm/check.hpp>
#include <heddle/core/contract.hpp>
#include <heddle/core/index.hpp>
#include <heddle/core/text.hpp>

namespace heddle::inline v0 {

namespace impl {

/// True between MPI_Init and MPI_Finalize.
[[nodiscard]] inline bool mpi_is_up() {
  int initialized = 0;
  int finalized = 0;
  MPI_Initialized(&initialized);
  MPI_Finalized(&finalized);
  return initialized != 0 && finalized == 0;
}

}  // namespace impl

/// Owns a duplicate or a part of an MPI communicator. MPI errors on it are thrown and do not end
/// the program.
///
/// Construction and destruction are collective over its ranks. MPI permits MPI_Comm_free to wait
/// for the other ranks, but Open MPI's does not wait. After MPI_Finalize the destructor does
/// nothing.
class Communicator {
 public:
  /// Duplicates `original`.
  /// @throws contract_error if MPI is not initialized or is finalized, or if `original` is null or
  ///         an inter-communicator.
  explicit Communicator(MPI_Comm original) {
    constexpr const char* where = "heddle::Communicator";
    expects(impl::mpi_is_up(), [&] {
      return ErrorInfo{where, "MPI is not running",
                       "MPI is not initialized yet, or already finalized",
                       "construct a heddle::Environment first"};
    });
    expects(original != MPI_COMM_NULL, [&] {
      return ErrorInfo{where, "the communicator is null", "MPI_COMM_NULL was given",
                       "only ranks that belong to a communicator can use it"};
    });
    int inter = 0;
    check(MPI_Comm_test_inter(original, &inter), where);
    expects(inter == 0, [&] {
      return ErrorInfo{where,
                       "an inter-communicator has no single set of ranks",
                       {},
                       "merge it with MPI_Intercomm_merge"};
    });
    MPI_Comm copy = MPI_COMM_NULL;
    check(MPI_Comm_dup(original, &copy), where);
    adopt(copy);
  }

  Communicator(const Communicator&) = delete;
  Communicator& operator=(const Communicator&) = delete;
  /// Moves the communicator. `other` is left empty.
  Communicator(Communicator&& other) noexcept
      : m_comm(std::exchange(other.m_comm, MPI_COMM_NULL)),
        m_rank(other.m_rank),
        m_size(std::exchange(other.m_size, 0)),
        m_attached(std::move(other.m_attached)) {}
  /// Swaps the two communicators.
  Communicator& operator=(Communicator&& other) noexcept {
    std::swap(m_comm, other.m_comm);
    std::swap(m_rank, other.m_rank);
    std::swap(m_size, other.m_size);
    std::swap(m_attached, other.m_attached);
    return *this;
  }
  ~Communicator() {
    m_attached.clear();
    if (m_comm != MPI_COMM_NULL && impl::mpi_is_up()) MPI_Comm_free(&m_comm);
  }

  /// Returns a communicator of the ranks that call with the same `color` >= 0, ordered by `key`,
  /// then by rank. Collective.
  [[nodiscard]] Communicator split(int color, int key) const {
    constexpr const char* where = "heddle::Communicator::split";
    expects(color >= 0, [&] {
      return ErrorInfo{where, "a color must be at least 0", text("rank ", m_rank, " gave ", color)};
    });
    Communicator part;
    MPI_Comm made = MPI_COMM_NULL;
    check(MPI_Comm_split(m_comm, color, key, &made), where);
    part.adopt(made);
    return part;
  }

  /// Returns this process's rank.
  [[nodiscard]] Rank rank() const noexcept { return m_rank; }
  /// Returns the number of ranks; 0 for a communicator that was moved from.
  [[nodiscard]] int size() const noexcept { return m_size; }
  /// Returns the handle for MPI calls. This object keeps ownership.
  [[nodiscard]] MPI_Comm get() const noexcept { return m_comm; }
  /// Returns the handle and gives up ownership, so that this object does not free the communicator.
  MPI_Comm release() noexcept {
    m_size = 0;
    return std::exchange(m_comm, MPI_COMM_NULL);
  }

  /// Returns the object of type T attached to this communicator. The first call constructs it as
  /// `T(handle)`; it is destroyed with the communicator. The library uses it to keep data from one
  /// call to the next. If the construction is collective, all ranks must call this function in the
  /// same order. The object stays attached if the communicator is moved.
  template <class T>
  [[nodiscard]] T& attached() const {
    for (const auto& [type, object] : m_attached)
      if (type == typeid(T)) return *static_cast<T*>(object.get());
    auto made = std::make_shared<T>(m_comm);
    T& object = *made;
    m_attached.emplace_back(typeid(T), std::move(made));
    return object;
  }

  friend std::ostream& operator<<(std::ostream& out, const Communicator& comm) {
    return out << "rank " << comm.m_rank << " of " << comm.m_size;
  }

 private:
  Communicator() = default;

  void adopt(MPI_Comm made) {
    m_comm = made;
    MPI_Comm_set_errhandler(m_comm, MPI_ERRORS_RETURN);
    int rank = 0;
    MPI_Comm_rank(m_comm, &rank);
    MPI_Comm_size(m_comm, &m_size);
    m_rank = Rank{rank};
  }

  MPI_Comm m_comm = MPI_COMM_NULL;
  Rank m_rank;
  int m_size = 0;
  mutable std::vector<std::pair<std::type_index, std::shared_ptr<void>>> m_attached;
};

}  // namespace heddle::inline v0
