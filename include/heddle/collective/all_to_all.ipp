// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// Definitions of all_to_all.hpp.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <numeric>
#include <utility>
#include <vector>

#include <mpi.h>

#include <heddle/collective/all_to_all.hpp>
#include <heddle/collective/impl/call_view.hpp>
#include <heddle/collective/impl/performer.hpp>
#include <heddle/collective/internal/block_counts.hpp>
#include <heddle/collective/internal/call.hpp>
#include <heddle/collective/internal/instance.hpp>
#include <heddle/collective/internal/meet.hpp>
#include <heddle/collective/internal/view_ref.hpp>
#include <heddle/comm/agreement.hpp>
#include <heddle/comm/check.hpp>
#include <heddle/comm/communicator.hpp>
#include <heddle/core/linkage.hpp>
#include <heddle/core/units.hpp>
#include <heddle/schedule/collective/algorithm.hpp>

namespace heddle::inline v0::impl {

HEDDLE_FULL_INLINE AllToAllCall::AllToAllCall(const CallArguments& with, const ViewRef& input,
                                              const ViewRef& output)
    : BlocksCall("heddle::collective::all_to_all", schedule::Collective::all_to_all, with, input,
                 output) {}

HEDDLE_FULL_INLINE void AllToAllCall::check() {
  input().prepare(ViewUse::reads, by());
  output().prepare(ViewUse::writes, by());
  input().keep_apart_from(output(), by());
  const std::size_t p = ranks();
  if (m_table.empty()) {
    m_received = BlockCounts(p * m_blocks.count(rank()), p);
  } else {
    std::vector<std::size_t> column(p);
    std::size_t total = 0;
    for (std::size_t r = 0; r < p; ++r) total += column[r] = m_table[r * p + rank()];
    m_received = BlockCounts(where(), total, p, column);
  }
  expect_size(where(), "output", output().view(), m_received.total());
}

HEDDLE_FULL_INLINE void AllToAllCall::exchange() {
  // Counts are exchanged by all ranks or by none.
  agree(
      comm(), where(), options().wait.watchdog,
      [&] { m_blocks = BlockCounts(where(), input().size(), ranks(), options().counts); },
      [&] {
        return impl::CollectiveCall{where(),
                                    {{"counts", options().counts.empty() ? "none" : "given"}}};
      },
      level());
  if (!options().counts.empty()) exchange_counts();
}

HEDDLE_FULL_INLINE void AllToAllCall::exchange_counts() {
  const std::size_t p = ranks();
  struct Told {
    std::vector<std::uint64_t> mine, all;
  };
  auto told = std::make_unique<Told>();
  told->mine.assign(options().counts.begin(), options().counts.end());
  told->all.resize(p * p);
  const auto each = static_cast<int>(p);
  MPI_Request request = MPI_REQUEST_NULL;
  heddle::check(MPI_Iallgather(told->mine.data(), each, MPI_UINT64_T, told->all.data(), each,
                               MPI_UINT64_T, comm().get(), &request),
                where());
  // A collective cannot be cancelled: where a rank does not come, its memory stays MPI's.
  Told* const lent = told.release();
  complete(comm(), where(), options().wait, request);
  told.reset(lent);
  m_table = std::move(told->all);
}

HEDDLE_FULL_INLINE Bytes AllToAllCall::bytes() const {
  const Bytes elements = m_table.empty()
                             ? m_blocks.total()
                             : std::accumulate(m_table.begin(), m_table.end(), Bytes{0}) / ranks();
  return elements * element();
}

HEDDLE_FULL_INLINE PerformerKey AllToAllCall::key() const {
  PerformerKey made = key_of(input().view());
  for (const std::uint64_t count : m_table) made.blocks.push_back(count * element());
  return made;
}

// MPI's int counts suffice. The answer is the same on all ranks.
HEDDLE_FULL_INLINE bool AllToAllCall::knows() const {
  Bytes most = 0;
  for (std::size_t r = 0; r < ranks(); ++r) {
    Bytes out = 0;
    Bytes in = 0;
    for (std::size_t q = 0; !m_table.empty() && q < ranks(); ++q) {
      out += m_table[r * ranks() + q];
      in += m_table[q * ranks() + r];
    }
    most = std::max({most, out, in, Bytes{m_blocks.total()}});
  }
  return fits_int((most + ranks()) * element());
}

HEDDLE_FULL_INLINE int AllToAllCall::library(MPI_Request* request) {
  const MPI_Comm all = comm().get();
  const void* const in = input().library_data();
  void* const out = output().library_data();
  if (m_table.empty() && m_blocks.even()) {
    const auto each = static_cast<int>(m_blocks.count(0) * element());
    return request == nullptr
               ? MPI_Alltoall(in, each, MPI_BYTE, out, each, MPI_BYTE, all)
               : MPI_Ialltoall(in, each, MPI_BYTE, out, each, MPI_BYTE, all, request);
  }
  m_blocks.to_mpi(element());
  m_received.to_mpi(element());
  return request == nullptr
             ? MPI_Alltoallv(in, m_blocks.mpi_counts(), m_blocks.mpi_firsts(), MPI_BYTE, out,
                             m_received.mpi_counts(), m_received.mpi_firsts(), MPI_BYTE, all)
             : MPI_Ialltoallv(in, m_blocks.mpi_counts(), m_blocks.mpi_firsts(), MPI_BYTE, out,
                              m_received.mpi_counts(), m_received.mpi_firsts(), MPI_BYTE, all,
                              request);
}

HEDDLE_FULL_INLINE std::unique_ptr<Call> AllToAllCall::moved() {
  return std::make_unique<AllToAllCall>(std::move(*this));
}

}  // namespace heddle::inline v0::impl
