// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// Environment: initializes and finalizes MPI and Kokkos as one object of main(). It is for
/// programs that do not do so themselves. Nothing else in the library initializes or finalizes
/// them.

#include <cstdint>
#include <exception>
#include <iosfwd>

#include <Kokkos_Core.hpp>
#include <mpi.h>

#include <heddle/core/linkage.hpp>

namespace heddle::inline v0 {

/// The threads that may call MPI. Heddle calls MPI from one thread only, so it needs `funneled`.
enum class ThreadLevel : std::uint8_t { single, funneled, serialized, multiple };

/// Prints the name of the level, such as `funneled`.
std::ostream& operator<<(std::ostream& out, ThreadLevel level);

namespace impl {

/// MPI, which this object has initialized or found initialized.
class MpiSession {
 public:
  MpiSession(int& argc, char** argv, ThreadLevel least);
  MpiSession(const MpiSession&) = delete;
  MpiSession& operator=(const MpiSession&) = delete;

  ~MpiSession();

  [[nodiscard]] bool owned() const noexcept { return m_owned; }
  [[nodiscard]] ThreadLevel level() const noexcept { return m_level; }

 private:
  bool m_owned = false;
  ThreadLevel m_level = ThreadLevel::single;
  int m_exceptions = std::uncaught_exceptions();
};

/// Kokkos, which this object has initialized or found initialized.
class KokkosSession {
 public:
  KokkosSession(int& argc, char** argv);
  KokkosSession(const KokkosSession&) = delete;
  KokkosSession& operator=(const KokkosSession&) = delete;
  ~KokkosSession();

  [[nodiscard]] bool owned() const noexcept { return m_owned; }

 private:
  bool m_owned = false;
};

}  // namespace impl

/// Initializes MPI and Kokkos if they are not initialized yet. The destructor finalizes what this
/// object has initialized, Kokkos first. Construct it at the beginning of main(); Views and meshes
/// must be destroyed before it.
///
/// If an exception leaves its scope, the whole job ends, so that other ranks do not wait forever.
/// The job also ends if another rank has not answered this one within a watchdog's time, even if
/// the program has caught that error, because MPI_Finalize would wait for the silent rank. In both
/// cases MPI is not finalized, and when this process exits, MPI_Abort ends all ranks with the
/// status EXIT_FAILURE. A handler outside the scope can still print the error. This holds only if
/// the Environment has initialized MPI; otherwise the code that did so is responsible.
///
/// MPI_Init and MPI_Finalize have no watchdog. They wait for a rank that comes minutes later, for
/// example because it writes a file, and nothing tells such a rank from one that is stopped there.
/// Only a time limit of the launcher or the batch system ends a job whose rank is stopped in them.
class Environment {
 public:
  /// Removes the arguments of MPI and Kokkos from the command line. `--help` is left to the
  /// program; use `--kokkos-help` for the options of Kokkos. `thread_level` is the level that MPI
  /// must provide at least.
  /// @throws contract_error if MPI or Kokkos is already finalized, or if MPI provides less than the
  ///         required thread level.
  Environment(int& argc, char** argv, ThreadLevel thread_level = ThreadLevel::funneled)
      : m_mpi(argc, argv, thread_level), m_kokkos(argc, argv) {}

  /// Returns true if this object has initialized MPI, and therefore finalizes it.
  [[nodiscard]] bool owns_mpi() const noexcept { return m_mpi.owned(); }
  /// Returns true if this object has initialized Kokkos, and therefore finalizes it.
  [[nodiscard]] bool owns_kokkos() const noexcept { return m_kokkos.owned(); }
  /// Returns the thread level that MPI provides.
  [[nodiscard]] ThreadLevel thread_level() const noexcept { return m_mpi.level(); }

 private:
  impl::MpiSession m_mpi;
  impl::KokkosSession m_kokkos;
};

}  // namespace heddle::inline v0

#if HEDDLE_DEFINES_COMM
#include <heddle/comm/environment.ipp>
#endif
