// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// Environment: initializes and finalizes MPI and Kokkos as one object of main(). It is for
/// programs that do not do so themselves. Nothing else in the library initializes or finalizes
/// them.

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <iostream>
#include <string_view>
#include <utility>
#include <vector>

#include <Kokkos_Core.hpp>
#include <mpi.h>

#include <heddle/comm/check.hpp>
#include <heddle/core/contract.hpp>
#include <heddle/core/text.hpp>

namespace heddle::inline v0 {

/// The threads that may call MPI. Heddle calls MPI from one thread only, so it needs `funneled`.
enum class ThreadLevel : std::uint8_t { single, funneled, serialized, multiple };

/// Prints the name of the level, such as `funneled`.
inline std::ostream& operator<<(std::ostream& out, ThreadLevel level) {
  constexpr const char* names[] = {"single", "funneled", "serialized", "multiple"};
  return out << names[static_cast<int>(level)];
}

/// Options of an Environment.
struct EnvironmentOptions {
  ThreadLevel thread_level = ThreadLevel::funneled;  ///< the level that MPI must provide at least
};

namespace impl {

/// Ends all ranks of the job if this process exits without MPI_Finalize. A callback on
/// MPI_COMM_SELF calls MPI_Abort, and the launcher then ends the whole job (tested with Open MPI
/// 4.1).
extern "C" inline void heddle_impl_end_job_at_exit() {
  int initialized = 0;
  int finalized = 0;
  MPI_Initialized(&initialized);
  MPI_Finalized(&finalized);
  if (initialized == 0 || finalized != 0) return;
  std::cout.flush();
  std::fflush(nullptr);  // MPI_Abort does not come back to write what is still in buffers
  MPI_Abort(MPI_COMM_SELF, EXIT_FAILURE);
}

/// MPI, which this object has initialized or found initialized.
class MpiSession {
 public:
  MpiSession(int& argc, char** argv, ThreadLevel least) {
    constexpr const char* where = "heddle::Environment";
    constexpr int levels[] = {MPI_THREAD_SINGLE, MPI_THREAD_FUNNELED, MPI_THREAD_SERIALIZED,
                              MPI_THREAD_MULTIPLE};
    const int asked = levels[static_cast<int>(least)];
    int finalized = 0;
    MPI_Finalized(&finalized);
    expects(finalized == 0, [&] {
      return ErrorInfo{where, "MPI is finalized already", "it cannot be initialized twice",
                       "keep one Environment for as long as the program needs MPI"};
    });
    int initialized = 0;
    MPI_Initialized(&initialized);
    int provided = MPI_THREAD_SINGLE;
    if (initialized == 0) {
      check(MPI_Init_thread(&argc, &argv, asked, &provided), where);
      m_owned = true;
    } else {
      check(MPI_Query_thread(&provided), where);
    }
    for (int i = 0; i < 4; ++i)
      if (levels[i] == provided) m_level = static_cast<ThreadLevel>(i);
    if (provided >= asked) return;
    if (m_owned) MPI_Finalize();
    throw contract_error({where, text("thread level ", least, " was asked for"),
                          text("MPI ", m_owned ? "provides only " : "is up with only ", m_level),
                          m_owned ? "use an MPI library that was built with thread support"
                                  : "initialize MPI with that level"});
  }
  MpiSession(const MpiSession&) = delete;
  MpiSession& operator=(const MpiSession&) = delete;

  ~MpiSession() {
    int finalized = 0;
    MPI_Finalized(&finalized);
    if (!m_owned || finalized != 0) return;
    // MPI_Finalize waits for the other ranks, and they may be waiting for this one.
    if (std::uncaught_exceptions() > m_exceptions)
      std::atexit(&heddle_impl_end_job_at_exit);
    else
      MPI_Finalize();
  }

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
  KokkosSession(int& argc, char** argv) {
    expects(!Kokkos::is_finalized(), [] {
      return ErrorInfo{"heddle::Environment", "Kokkos is finalized already",
                       "it cannot be initialized twice",
                       "keep one Environment for as long as the program needs Kokkos"};
    });
    if (Kokkos::is_initialized()) return;
    // Kokkos would answer the program's --help by a page of its own, on every rank: it is hidden.
    static char hidden[] = "";
    std::vector<char*> help;
    for (int i = 1; i < argc; ++i)
      if (std::string_view(argv[i]) == "--help") help.push_back(std::exchange(argv[i], hidden));
    Kokkos::initialize(argc, argv);
    for (int i = 1, h = 0; i < argc; ++i)
      if (argv[i] == hidden) argv[i] = help[static_cast<std::size_t>(h++)];
    m_owned = true;
  }
  KokkosSession(const KokkosSession&) = delete;
  KokkosSession& operator=(const KokkosSession&) = delete;
  ~KokkosSession() {
    if (m_owned && !Kokkos::is_finalized()) Kokkos::finalize();
  }

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
/// In this case MPI is not finalized, and when this process exits, MPI_Abort ends all ranks with
/// the status EXIT_FAILURE. A handler outside the scope can still print the error. This holds only
/// if the Environment has initialized MPI; otherwise the code that did so is responsible. Do not
/// catch inside the scope an error which says that a rank does not answer, because MPI_Finalize
/// would wait for that rank.
class Environment {
 public:
  /// Removes the arguments of MPI and Kokkos from the command line. `--help` is left to the
  /// program; use `--kokkos-help` for the options of Kokkos.
  /// @throws contract_error if MPI or Kokkos is already finalized, or if MPI provides less than the
  ///         required thread level.
  Environment(int& argc, char** argv, EnvironmentOptions options = {})
      : m_mpi(argc, argv, options.thread_level), m_kokkos(argc, argv) {}

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
