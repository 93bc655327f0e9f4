// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// The functions of MPI with which ranks go on after one has died. They are those of User Level
/// Failure Mitigation, which Open MPI has from version 5 on. With other libraries, ranks can agree
/// only while all of them are alive.

#include <algorithm>
#include <cstddef>
#include <memory>
#include <numeric>
#include <optional>
#include <string>
#include <vector>

#include <mpi.h>

#if __has_include(<mpi-ext.h>)
#include <mpi-ext.h>
#endif

#include <heddle/comm/check.hpp>
#include <heddle/core/error.hpp>
#include <heddle/core/index.hpp>
#include <heddle/core/text.hpp>
#include <heddle/core/units.hpp>
#include <heddle/execute/await.hpp>
#include <heddle/execute/clock.hpp>
#include <heddle/execute/idle.hpp>

namespace heddle::inline v0::impl {

/// Returns the numbers in `all` of the ranks of `part`, in their order in `part`.
[[nodiscard]] inline std::vector<Rank> ranks_in(MPI_Group all, MPI_Group part) {
  int count = 0;
  MPI_Group_size(part, &count);
  std::vector<int> numbers(static_cast<std::size_t>(count)), found(numbers.size());
  std::iota(numbers.begin(), numbers.end(), 0);
  MPI_Group_translate_ranks(part, count, numbers.data(), all, found.data());
  std::vector<Rank> ranks;
  for (const int rank : found) ranks.emplace_back(rank);
  return ranks;
}

#if defined(OMPI_HAVE_MPI_EXT_FTMPI) && OMPI_HAVE_MPI_EXT_FTMPI

/// Returns true if MPI says by `code` that a rank has died, or that another rank has found this.
[[nodiscard]] inline bool is_death(int code) {
  if (code == MPI_SUCCESS) return false;
  int kind = MPI_SUCCESS;
  MPI_Error_class(code, &kind);
  return kind == MPIX_ERR_PROC_FAILED || kind == MPIX_ERR_PROC_FAILED_PENDING ||
         kind == MPIX_ERR_REVOKED;
}

/// Ends all operations of all ranks on `comm`, except for agreements.
inline void revoke(MPI_Comm comm) { MPIX_Comm_revoke(comm); }

/// Returns the lowest rank of `comm` that this rank knows to be dead, if any.
[[nodiscard]] inline std::optional<Rank> dead_rank(MPI_Comm comm) {
  MPI_Group all = MPI_GROUP_NULL, dead = MPI_GROUP_NULL;
  if (MPIX_Comm_get_failed(comm, &dead) != MPI_SUCCESS) return std::nullopt;
  MPI_Comm_group(comm, &all);
  const std::vector<Rank> ranks = ranks_in(all, dead);
  MPI_Group_free(&all);
  MPI_Group_free(&dead);
  const auto lowest = std::ranges::min_element(ranks);
  return lowest == ranks.end() ? std::nullopt : std::optional(*lowest);
}

inline int begin_agreement(int* flags, MPI_Comm comm, MPI_Request* request) {
  return MPIX_Comm_iagree(comm, flags, request);
}

/// Returns a communicator of the ranks of `comm` that are alive. Its errors return.
[[nodiscard]] inline MPI_Comm shrunk(MPI_Comm comm, const char* where, const std::string&) {
  MPI_Comm left = MPI_COMM_NULL;
  check(MPIX_Comm_shrink(comm, &left), where);
  MPI_Comm_set_errhandler(left, MPI_ERRORS_RETURN);
  return left;
}

#else

[[nodiscard]] inline bool is_death(int) { return false; }
inline void revoke(MPI_Comm) {}
[[nodiscard]] inline std::optional<Rank> dead_rank(MPI_Comm) { return std::nullopt; }
inline int begin_agreement(int* flags, MPI_Comm comm, MPI_Request* request) {
  return MPI_Iallreduce(MPI_IN_PLACE, flags, 1, MPI_INT, MPI_BAND, comm, request);
}
[[noreturn]] inline MPI_Comm shrunk(MPI_Comm, const char* where, const std::string& story) {
  throw communication_error({where,
                             text("this MPI library cannot find out who is left",
                                  story.empty() ? "" : text(" after: ", story)),
                             {},
                             "if a rank has died, use Open MPI 5 and start the job with mpiexec "
                             "--with-ft ulfm, or restart it from its checkpoint with elastic"});
}

#endif

/// Returns the bitwise and of the flags of all ranks of `comm` that are alive.
/// @throws communication_error if this takes longer than `watchdog` seconds (0: no limit).
[[nodiscard]] inline int agreed_flags(int flags, MPI_Comm comm, const std::string& where,
                                      Seconds watchdog) {
  auto value = std::make_unique<int>(flags);
  MPI_Request request = MPI_REQUEST_NULL;
  const int begun = begin_agreement(value.get(), comm, &request);
  // Without a request no agreement has begun, and the own flags are not those of all ranks.
  if (!is_death(begun) || request == MPI_REQUEST_NULL) check(begun, where);
  Waiting waiting(Idle::nap);
  for (const Seconds since = steady_seconds();; waiting()) {
    int done = 0;
    const int code = MPI_Test(&request, &done, MPI_STATUS_IGNORE);
    if (is_death(code)) return *value;  // they agree, and somebody has died
    check(code, where);
    if (done != 0) return *value;
    if (watchdog <= 0 || steady_seconds() - since <= watchdog) continue;
    static_cast<void>(value.release());  // MPI may still write it
    throw communication_error(
        {where, does_not({}, "answer"), text("watchdog after ", watchdog, " s"), about_silence});
  }
}

/// Returns the numbers in `before` of the ranks of `after`, in their order there.
[[nodiscard]] inline std::vector<Rank> ranks_before(MPI_Comm before, MPI_Comm after) {
  MPI_Group from = MPI_GROUP_NULL, of = MPI_GROUP_NULL;
  MPI_Comm_group(after, &from);
  MPI_Comm_group(before, &of);
  std::vector<Rank> ranks = ranks_in(of, from);
  MPI_Group_free(&from);
  MPI_Group_free(&of);
  return ranks;
}

}  // namespace heddle::inline v0::impl
