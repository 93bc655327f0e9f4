// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// Communicator: an MPI communicator that Heddle creates and frees. The caller's communicator is
/// only duplicated and never used for messages, so messages of Heddle and of the caller cannot be
/// confused.

#include <atomic>
#include <iosfwd>
#include <memory>
#include <string_view>
#include <type_traits>
#include <typeinfo>
#include <utility>
#include <vector>

#include <mpi.h>

#include <heddle/core/index.hpp>
#include <heddle/core/linkage.hpp>

namespace heddle::inline v0 {

class Communicator;

namespace impl {

/// Checks the color that this rank gives to Communicator::split(), together with the other ranks.
void check_color(const Communicator& comm, int color, const char* where);

/// True between MPI_Init and MPI_Finalize.
[[nodiscard]] bool mpi_is_up();

/// True once another rank has not answered this process within a watchdog's time. The Environment
/// then does not finalize MPI, because MPI_Finalize would wait for that rank.
inline std::atomic<bool> found_silent_rank{false};

}  // namespace impl

/// Owns a duplicate or a part of an MPI communicator. MPI errors on it are thrown and do not end
/// the program.
///
/// Construction and destruction are collective over its ranks. MPI permits MPI_Comm_free to wait
/// for the other ranks, but Open MPI's does not wait. After MPI_Finalize, and after leave_to_mpi(),
/// the destructor does nothing.
///
/// A communicator without ranks is empty: it was moved from or released, or split() put this rank
/// in no part. Its size() is 0, and every call that gets it throws contract_error.
class Communicator {
 public:
  /// Duplicates `original`.
  /// @throws contract_error if MPI is not initialized or is finalized, or if `original` is null or
  ///         an inter-communicator.
  explicit Communicator(MPI_Comm original);

  Communicator(const Communicator&) = delete;
  Communicator& operator=(const Communicator&) = delete;
  /// Moves the communicator. `other` is left empty.
  Communicator(Communicator&& other) noexcept;
  /// Swaps the two communicators.
  Communicator& operator=(Communicator&& other) noexcept;
  ~Communicator();

  /// Returns a communicator of the ranks that call with the same `color`, ordered by `key`, then by
  /// rank. A color is at least 0. A rank that gives MPI_UNDEFINED is in no part, and gets an empty
  /// communicator. Collective.
  /// @throws contract_error on every rank if a rank gives another color below 0.
  /// @throws communication_error if a rank does not make the call within 120 seconds.
  [[nodiscard]] Communicator split(int color, int key) const;

  /// Returns this process's rank.
  [[nodiscard]] Rank rank() const noexcept { return m_rank; }
  /// Returns the number of ranks; 0 if the communicator is empty.
  [[nodiscard]] int size() const noexcept { return m_size; }
  /// Returns the handle for MPI calls, or MPI_COMM_NULL if the communicator is empty. This object
  /// keeps ownership.
  [[nodiscard]] MPI_Comm get() const noexcept { return m_comm; }
  /// Throws contract_error in the name of the call `where` if the communicator is empty.
  void expect_not_empty(std::string_view where) const {
    if (m_comm == MPI_COMM_NULL) [[unlikely]]
      refuse_empty(where);
  }
  /// Returns the handle and gives up ownership, so that this object does not free the communicator.
  MPI_Comm release() noexcept {
    m_size = 0;
    return std::exchange(m_comm, MPI_COMM_NULL);
  }

  /// Gives up an operation in flight: `memory`, which the operation may still read and write, and
  /// the communicator are never freed. MPI cannot cancel a collective operation, and Open MPI 4.1
  /// crashes if one goes on after MPI_Comm_free.
  template <class Memory>
  void leave_to_mpi(Memory&& memory) const {
    leave_to_mpi();
    static_cast<void>(new std::remove_cvref_t<Memory>(std::forward<Memory>(memory)));
  }
  /// Gives up an operation in flight that has no memory: the communicator is never freed.
  void leave_to_mpi() const noexcept { m_left = true; }

  /// Returns the object of type T attached to this communicator. The first call constructs it as
  /// `T(handle)`; it is destroyed with the communicator. The library uses it to keep data from one
  /// call to the next. If the construction is collective, all ranks must call this function in the
  /// same order. The object stays attached if the communicator is moved.
  /// @throws contract_error if the communicator is empty.
  template <class T>
  [[nodiscard]] T& attached() const {
    expect_not_empty("heddle::Communicator::attached");
    void* object = find(typeid(T));
    if (object == nullptr) object = attach(typeid(T), std::make_shared<T>(m_comm));
    return *static_cast<T*>(object);
  }

  friend std::ostream& operator<<(std::ostream& out, const Communicator& comm);

 private:
  struct Attached;

  Communicator();

  /// Returns the attached object of a type, or null.
  [[nodiscard]] void* find(const std::type_info& type) const noexcept;
  /// Attaches an object of a type, and returns it.
  [[nodiscard]] void* attach(const std::type_info& type, std::shared_ptr<void> object) const;
  void adopt(MPI_Comm made);
  [[noreturn]] static void refuse_empty(std::string_view where);

  MPI_Comm m_comm = MPI_COMM_NULL;
  Rank m_rank;
  int m_size = 0;
  mutable bool m_left = false;  ///< An operation of it was left to MPI.
  mutable std::vector<Attached> m_attached;
};

}  // namespace heddle::inline v0

#if HEDDLE_DEFINES_COMM
#include <heddle/comm/communicator.ipp>
#endif
