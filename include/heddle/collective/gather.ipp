// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// Definitions of gather.hpp.

#include <memory>
#include <utility>

#include <mpi.h>

#include <heddle/collective/gather.hpp>
#include <heddle/collective/impl/call_view.hpp>
#include <heddle/collective/internal/block_counts.hpp>
#include <heddle/collective/internal/call.hpp>
#include <heddle/collective/internal/instance.hpp>
#include <heddle/collective/internal/view_ref.hpp>
#include <heddle/comm/communicator.hpp>
#include <heddle/core/index.hpp>
#include <heddle/core/linkage.hpp>
#include <heddle/schedule/collective/algorithm.hpp>

namespace heddle::inline v0::impl {

HEDDLE_FULL_INLINE GatherCall::GatherCall(const CallArguments& with, const ViewRef& input,
                                          const ViewRef& output, Rank root)
    : BlocksCall("heddle::collective::gather", schedule::Collective::gather, with, input, output,
                 root) {}

HEDDLE_FULL_INLINE void GatherCall::check() {
  expect_root(m_root);
  input().prepare(ViewUse::reads, by());
  m_blocks = BlockCounts::of_each(where(), input().size(), ranks(), options().counts);
  expect_size(where(), "input", input().view(), m_blocks.count(rank()));
  if (!at_root()) return;
  output().prepare(ViewUse::writes, by());
  expect_size(where(), "output", output().view(), m_blocks.total());
  input().keep_apart_from(output(), by());
}

HEDDLE_FULL_INLINE int GatherCall::library(MPI_Request* request) {
  if (!m_blocks.even()) m_blocks.to_mpi(element());
  const auto mine = static_cast<int>(input().bytes());
  const auto at = static_cast<int>(m_root.value);
  const MPI_Comm all = comm().get();
  const void* const in = input().library_data();
  void* const out = output().library_data();
  if (m_blocks.even())
    return request == nullptr
               ? MPI_Gather(in, mine, MPI_BYTE, out, mine, MPI_BYTE, at, all)
               : MPI_Igather(in, mine, MPI_BYTE, out, mine, MPI_BYTE, at, all, request);
  return request == nullptr ? MPI_Gatherv(in, mine, MPI_BYTE, out, m_blocks.mpi_counts(),
                                          m_blocks.mpi_firsts(), MPI_BYTE, at, all)
                            : MPI_Igatherv(in, mine, MPI_BYTE, out, m_blocks.mpi_counts(),
                                           m_blocks.mpi_firsts(), MPI_BYTE, at, all, request);
}

HEDDLE_FULL_INLINE std::unique_ptr<Call> GatherCall::moved() {
  return std::make_unique<GatherCall>(std::move(*this));
}

}  // namespace heddle::inline v0::impl
