// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// Definitions of environment.hpp.

#include <cstddef>
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
#include <heddle/comm/communicator.hpp>
#include <heddle/comm/environment.hpp>
#include <heddle/core/contract.hpp>
#include <heddle/core/error.hpp>
#include <heddle/core/internal/enumerator.hpp>
#include <heddle/core/linkage.hpp>
#include <heddle/core/text.hpp>

namespace heddle::inline v0 {

HEDDLE_FULL_INLINE std::ostream& operator<<(std::ostream& out, ThreadLevel level) {
  constexpr const char* names[] = {"single", "funneled", "serialized", "multiple"};
  return out << impl::enumerator_name(names, level);
}

namespace impl {

// Ends all ranks of the job if this process exits without MPI_Finalize. A callback on
// MPI_COMM_SELF calls MPI_Abort, and the launcher then ends the whole job (tested with Open MPI
// 4.1).
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

}  // namespace impl

HEDDLE_FULL_INLINE impl::MpiSession::MpiSession(int& argc, char** argv, ThreadLevel least) {
  constexpr const char* where = "heddle::Environment";
  constexpr int levels[] = {MPI_THREAD_SINGLE, MPI_THREAD_FUNNELED, MPI_THREAD_SERIALIZED,
                            MPI_THREAD_MULTIPLE};
  expect_enumerator(where, "thread_level", least, ThreadLevel::multiple);
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

HEDDLE_FULL_INLINE impl::MpiSession::~MpiSession() {
  int finalized = 0;
  MPI_Finalized(&finalized);
  if (!m_owned || finalized != 0) return;
  // MPI_Finalize waits for the other ranks, and they may be waiting for this one, or be silent.
  const bool unwinds = std::uncaught_exceptions() > m_exceptions;
  if (!unwinds && !found_silent_rank) {
    MPI_Finalize();
    return;
  }
  if (!unwinds)
    std::cerr << "heddle::Environment: MPI cannot be finalized, because another rank did not "
                 "answer within the watchdog's time; the job ends\n"
              << std::flush;
  std::atexit(&heddle_impl_end_job_at_exit);
}

HEDDLE_FULL_INLINE impl::KokkosSession::KokkosSession(int& argc, char** argv) {
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

HEDDLE_FULL_INLINE impl::KokkosSession::~KokkosSession() {
  if (m_owned && !Kokkos::is_finalized()) Kokkos::finalize();
}

}  // namespace heddle::inline v0
