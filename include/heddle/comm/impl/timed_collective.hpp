// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// What measure_collectives() times: one collective of floats, by a Schedule or by the MPI library,
/// in memory of its own.

#include <algorithm>
#include <cstddef>
#include <cstring>
#include <numeric>
#include <utility>
#include <vector>

#include <mpi.h>

#include <heddle/comm/check.hpp>
#include <heddle/comm/communicator.hpp>
#include <heddle/comm/mpi_transport.hpp>
#include <heddle/execute/combine.hpp>
#include <heddle/execute/executor.hpp>
#include <heddle/execute/slice.hpp>
#include <heddle/execute/task.hpp>
#include <heddle/schedule/collective/collective.hpp>
#include <heddle/schedule/schedule.hpp>

namespace heddle::inline v0::impl {

/// A Schedule of a collective, ready to be performed again and again on zeros.
class ScheduledCollective {
 public:
  ScheduledCollective(const Schedule& schedule, MpiTransport& transport, Seconds watchdog)
      : m_executor(slice(schedule, transport.rank(),
                         [this](BufferId, const Buffer& buffer) {
                           m_memory.emplace_back(static_cast<std::size_t>(buffer.bytes + 7) / 8);
                           return reinterpret_cast<std::byte*>(m_memory.back().data());
                         }),
                   transport, {.watchdog = watchdog}) {}

  void operator()() {
    m_executor.step([](const Task& task) {
      if (task.kind() == Kind::combine) return combine_on_host(task);
      const BoundUse& from = task.uses()[0];
      if (from.bytes != 0) std::memcpy(task.uses()[1].data, from.data, from.bytes);
    });
    m_executor.drain();
  }

 private:
  std::vector<std::vector<double>> m_memory;
  Executor<MpiTransport> m_executor;
};

/// The MPI library's own call of a collective of so many bytes, on zeros. Blocks are as
/// schedule::collective() cuts them.
class LibraryCollective {
 public:
  LibraryCollective(schedule::Collective collective, Bytes bytes, const Communicator& comm)
      : m_collective(collective), m_comm(comm.get()) {
    const auto ranks = static_cast<std::size_t>(comm.size());
    const auto elements = static_cast<std::size_t>(bytes / sizeof(float));
    for (std::size_t r = 0; r < ranks; ++r)
      m_counts.push_back(static_cast<int>(elements / ranks + (r < elements % ranks ? 1 : 0)));
    m_begins.resize(ranks, 0);
    std::partial_sum(m_counts.begin(), m_counts.end() - 1, m_begins.begin() + 1);
    m_rank = static_cast<std::size_t>(comm.rank().value);
    const std::size_t widest = static_cast<std::size_t>(m_counts[0]) * ranks;
    m_input.resize(std::max(elements, widest) + 1);
    m_output.resize(std::max(elements, widest) + 1);
  }

  void operator()() { check(call(), "heddle::measure_collectives"); }

 private:
  [[nodiscard]] int call() {
    using schedule::Collective;
    float* const in = m_input.data();
    float* const out = m_output.data();
    const int mine = m_counts[m_rank];
    const int all = std::accumulate(m_counts.begin(), m_counts.end(), 0);
    switch (m_collective) {
      case Collective::all_reduce:
        return MPI_Allreduce(MPI_IN_PLACE, in, all, MPI_FLOAT, MPI_SUM, m_comm);
      case Collective::reduce_scatter:
        return MPI_Reduce_scatter(in, out, m_counts.data(), MPI_FLOAT, MPI_SUM, m_comm);
      case Collective::all_gather:
        return MPI_Allgatherv(in, mine, MPI_FLOAT, out, m_counts.data(), m_begins.data(), MPI_FLOAT,
                              m_comm);
      case Collective::all_to_all: {
        const std::vector<int> receives(m_counts.size(), mine);
        std::vector<int> begins(m_counts.size());
        for (std::size_t r = 0; r < begins.size(); ++r) begins[r] = static_cast<int>(r) * mine;
        return MPI_Alltoallv(in, m_counts.data(), m_begins.data(), MPI_FLOAT, out, receives.data(),
                             begins.data(), MPI_FLOAT, m_comm);
      }
      case Collective::broadcast: return MPI_Bcast(in, all, MPI_FLOAT, 0, m_comm);
      case Collective::reduce:
        return MPI_Reduce(m_rank == 0 ? MPI_IN_PLACE : in, in, all, MPI_FLOAT, MPI_SUM, 0, m_comm);
      case Collective::gather:
        return MPI_Gatherv(in, mine, MPI_FLOAT, out, m_counts.data(), m_begins.data(), MPI_FLOAT, 0,
                           m_comm);
      case Collective::scatter:
        return MPI_Scatterv(in, m_counts.data(), m_begins.data(), MPI_FLOAT, out, mine, MPI_FLOAT,
                            0, m_comm);
      case Collective::barrier: return MPI_Barrier(m_comm);
    }
    return MPI_ERR_OP;
  }

  schedule::Collective m_collective;
  MPI_Comm m_comm;
  std::vector<int> m_counts;
  std::vector<int> m_begins;
  std::size_t m_rank = 0;
  std::vector<float> m_input;
  std::vector<float> m_output;
};

}  // namespace heddle::inline v0::impl
