// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// Definitions of scatter.hpp.

#include <memory>
#include <utility>

#include <mpi.h>

#include <heddle/collective/impl/call_view.hpp>
#include <heddle/collective/internal/block_counts.hpp>
#include <heddle/collective/internal/call.hpp>
#include <heddle/collective/internal/instance.hpp>
#include <heddle/collective/internal/view_ref.hpp>
#include <heddle/collective/scatter.hpp>
#include <heddle/comm/communicator.hpp>
#include <heddle/core/index.hpp>
#include <heddle/core/linkage.hpp>
#include <heddle/schedule/collective/algorithm.hpp>

namespace heddle::inline v0::impl {

HEDDLE_FULL_INLINE ScatterCall::ScatterCall(const CallArguments& with, const ViewRef& input,
                                            const ViewRef& output, Rank root)
    : BlocksCall("heddle::collective::scatter", schedule::Collective::scatter, with, input, output,
                 root) {}

HEDDLE_FULL_INLINE void ScatterCall::check() {
  expect_root(m_root);
  output().prepare(ViewUse::writes, by());
  m_blocks = BlockCounts::of_each(where(), output().size(), ranks(), options().counts);
  expect_size(where(), "output", output().view(), m_blocks.count(rank()));
  if (!at_root()) return;
  input().prepare(ViewUse::reads, by());
  expect_size(where(), "input", input().view(), m_blocks.total());
  output().keep_apart_from(input(), by());
}

HEDDLE_FULL_INLINE int ScatterCall::library(MPI_Request* request) {
  if (!m_blocks.even()) m_blocks.to_mpi(element());
  const auto mine = static_cast<int>(output().bytes());
  const auto at = static_cast<int>(m_root.value);
  const MPI_Comm all = comm().get();
  const void* const in = input().library_data();
  void* const out = output().library_data();
  if (m_blocks.even())
    return request == nullptr
               ? MPI_Scatter(in, mine, MPI_BYTE, out, mine, MPI_BYTE, at, all)
               : MPI_Iscatter(in, mine, MPI_BYTE, out, mine, MPI_BYTE, at, all, request);
  return request == nullptr ? MPI_Scatterv(in, m_blocks.mpi_counts(), m_blocks.mpi_firsts(),
                                           MPI_BYTE, out, mine, MPI_BYTE, at, all)
                            : MPI_Iscatterv(in, m_blocks.mpi_counts(), m_blocks.mpi_firsts(),
                                            MPI_BYTE, out, mine, MPI_BYTE, at, all, request);
}

HEDDLE_FULL_INLINE std::unique_ptr<Call> ScatterCall::moved() {
  return std::make_unique<ScatterCall>(std::move(*this));
}

}  // namespace heddle::inline v0::impl
