// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// Definitions of roll_call.hpp.

#include <algorithm>
#include <cstddef>
#include <string>
#include <utility>
#include <vector>

#include <mpi.h>

#include <heddle/comm/communicator.hpp>
#include <heddle/comm/internal/roll_call.hpp>
#include <heddle/core/error.hpp>
#include <heddle/core/index.hpp>
#include <heddle/core/linkage.hpp>
#include <heddle/core/text.hpp>
#include <heddle/core/units.hpp>
#include <heddle/execute/await.hpp>
#include <heddle/execute/clock.hpp>
#include <heddle/execute/execute_options.hpp>
#include <heddle/execute/idle.hpp>

namespace heddle::inline v0::impl {

HEDDLE_FULL_INLINE bool RollCall::begun(const Communicator& comm) {
  int there = 0;
  MPI_Iprobe(MPI_ANY_SOURCE, tag, comm.get(), &there, MPI_STATUS_IGNORE);
  return there != 0;
}

HEDDLE_FULL_INLINE std::vector<int> RollCall::missing(Seconds grace) const {
  std::vector<char> here(static_cast<std::size_t>(m_comm->size()), 0);
  here[+m_comm->rank()] = 1;
  for (int peer = 0; peer < m_comm->size(); ++peer) {
    if (Rank{peer} == m_comm->rank()) continue;
    MPI_Request word = MPI_REQUEST_NULL;
    if (MPI_Isend(nullptr, 0, MPI_BYTE, peer, tag, m_comm->get(), &word) == MPI_SUCCESS)
      MPI_Request_free(&word);
  }
  const Seconds since = steady_seconds();
  for (Waiting waiting(Idle::nap);; waiting()) {
    while (begun(*m_comm)) {
      MPI_Status status;
      MPI_Recv(nullptr, 0, MPI_BYTE, MPI_ANY_SOURCE, tag, m_comm->get(), &status);
      here[static_cast<std::size_t>(status.MPI_SOURCE)] = 1;
    }
    if (std::ranges::count(here, 0) == 0 || steady_seconds() - since > grace) break;
  }
  std::vector<int> ranks;
  for (int r = 0; r < m_comm->size(); ++r)
    if (here[static_cast<std::size_t>(r)] == 0) ranks.push_back(r);
  return ranks;
}

HEDDLE_FULL_INLINE std::vector<Rank> RollCall::named(const std::vector<int>& ranks) const {
  MPI_Group own = MPI_GROUP_NULL, all = MPI_GROUP_NULL;
  MPI_Comm_group(m_comm->get(), &own);
  MPI_Comm_group(m_all, &all);
  std::vector<int> numbers(ranks.size());
  MPI_Group_translate_ranks(own, static_cast<int>(ranks.size()), ranks.data(), all, numbers.data());
  MPI_Group_free(&own);
  MPI_Group_free(&all);
  std::vector<Rank> names;
  for (const int number : numbers) names.emplace_back(static_cast<std::size_t>(number));
  return names;
}

HEDDLE_FULL_INLINE communication_error RollCall::stuck(std::string where,
                                                       const ExecuteOptions& options, bool late,
                                                       const char* fix) {
  const std::vector<Rank> silent = named(missing(options.grace));
  if (!silent.empty()) found_silent_rank = true;
  const char* const slow =
      late ? "stuck: all ranks are in the call, and it takes longer than the watchdog"
           : "stuck: another rank has given up the call";
  return communication_error(
      {std::move(where),
       silent.empty() ? slow : "stuck: " + does_not(silent, "take part in the call in time"),
       late ? text("watchdog after ", options.watchdog, " s") : "watchdog of another rank", fix});
}

}  // namespace heddle::inline v0::impl
