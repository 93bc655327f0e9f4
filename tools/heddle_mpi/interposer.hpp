// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// Interposer: all that libheddle_mpi.so keeps.

#include <cstdlib>
#include <string_view>

#include <mpi.h>

#include "choice.hpp"
#include "known_types.hpp"
#include "messages.hpp"
#include "report.hpp"
#include "requests.hpp"

namespace heddle_mpi {

/// What the environment says, and what there is at the moment.
struct Interposer {
  const bool on = std::string_view(std::getenv("HEDDLE_MPI_OFF") == nullptr
                                       ? ""
                                       : std::getenv("HEDDLE_MPI_OFF")) != "1";
  Gains gains = gains_of(on ? std::getenv("HEDDLE_MPI_TABLE") : nullptr);
  KnownTypes types;
  Counters counters;
  Messages messages{counters};
  Requests requests;
  FreedRequests freed;
};

/// Whether a message that is too long for its receive ends the program. Open MPI 4.1 writes such a
/// one past the end of memory in one piece before it says so, but not of a strided datatype: a
/// program that goes on must find its memory as it was. MPICH writes none.
[[nodiscard]] inline bool too_long_ends([[maybe_unused]] MPI_Comm comm) {
#ifdef OPEN_MPI
  MPI_Errhandler handler = MPI_ERRHANDLER_NULL;
  if (PMPI_Comm_get_errhandler(comm, &handler) != MPI_SUCCESS) return false;
  const bool fatal = handler == MPI_ERRORS_ARE_FATAL;
  PMPI_Errhandler_free(&handler);
  return fatal;
#else
  return true;
#endif
}

/// Makes one; ends the program where a setting is wrong.
[[nodiscard]] Interposer* make_interposer();

/// The only one, made when it is first asked for. It is never destroyed, as MPI may call back until
/// the program ends.
[[nodiscard]] inline Interposer& interposer() {
  static Interposer& only = *make_interposer();
  return only;
}

}  // namespace heddle_mpi
