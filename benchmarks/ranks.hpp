// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// What the benchmarks of several ranks share.

#include <sched.h>
#include <string>
#include <string_view>

#include <mpi.h>

#include <heddle/core/contract.hpp>
#include <heddle/core/text.hpp>

#include "support.hpp"

namespace bench {

/// Gives a rank a core of its own, as far as there are so many.
inline void bind_to_core(int rank) {
  cpu_set_t allowed;
  sched_getaffinity(0, sizeof allowed, &allowed);
  const int count = CPU_COUNT(&allowed);
  for (int core = 0, seen = 0; core < CPU_SETSIZE; ++core) {
    if (!CPU_ISSET(core, &allowed) || seen++ != rank % count) continue;
    cpu_set_t one;
    CPU_ZERO(&one);
    CPU_SET(core, &one);
    sched_setaffinity(0, sizeof one, &one);
    return;
  }
}

/// Which of two ranks this is, after it has a core of its own. @throws contract_error where there
/// are not two.
inline int one_of_two_ranks(std::string_view name) {
  int ranks = 0, rank = 0;
  MPI_Comm_size(MPI_COMM_WORLD, &ranks);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  heddle::expects(ranks == 2, [&] {
    return heddle::ErrorInfo{std::string(name), "two ranks are compared",
                             heddle::text(ranks, " ranks")};
  });
  bind_to_core(rank);
  return rank;
}

/// Seconds of `work`, which all ranks begin together, of the slowest one; on every rank.
template <class Work>
[[nodiscard]] double seconds_of_all(MPI_Comm comm, Work&& work) {
  MPI_Barrier(comm);
  double seconds = seconds_of(work);
  MPI_Allreduce(MPI_IN_PLACE, &seconds, 1, MPI_DOUBLE, MPI_MAX, comm);
  return seconds;
}

}  // namespace bench
