// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// Definitions of all_gather.hpp.

#include <cstddef>
#include <memory>
#include <utility>

#include <mpi.h>

#include <heddle/collective/all_gather.hpp>
#include <heddle/collective/impl/call_view.hpp>
#include <heddle/collective/impl/performer.hpp>
#include <heddle/collective/internal/block_counts.hpp>
#include <heddle/collective/internal/call.hpp>
#include <heddle/collective/internal/instance.hpp>
#include <heddle/collective/internal/view_ref.hpp>
#include <heddle/comm/communicator.hpp>
#include <heddle/core/linkage.hpp>
#include <heddle/schedule/collective/algorithm.hpp>

namespace heddle::inline v0::impl {

HEDDLE_FULL_INLINE AllGatherCall::AllGatherCall(const CallArguments& with, const ViewRef& input,
                                                const ViewRef& output)
    : BlocksCall("heddle::collective::all_gather", schedule::Collective::all_gather, with, input,
                 output) {}

HEDDLE_FULL_INLINE void AllGatherCall::check() {
  output().prepare(ViewUse::writes, by(), comm());
  m_blocks = BlockCounts(where(), output().size(), ranks(), options().counts);
  expect_size(where(), "input", input().view(), m_blocks.count(rank()));
  // A block in place stays in place, whatever the layout: MPI wants all ranks in place, or none.
  const bool inside = input().data() == output().place_of(m_blocks.first(rank()));
  if (inside) output().has_part();
  if (inside && output().packed() && !output().stays())
    input().prepare_in(own(), ViewUse::reads);
  else
    input().prepare(ViewUse::reads, by());
  if (!in_place()) input().keep_apart_from(output(), by());
}

HEDDLE_FULL_INLINE PerformerKey AllGatherCall::key() const {
  PerformerKey made = BlocksCall::key();
  // A codec changes what its sender has, too; in a device's memory copies keep kernels waiting.
  made.apart = by().on_host() && !options().codec && !in_place();
  return made;
}

HEDDLE_FULL_INLINE CallMemory AllGatherCall::memory() const { return {output().data(), nullptr}; }

HEDDLE_FULL_INLINE CallMemory AllGatherCall::apart() const {
  return {input().data(), output().data()};
}

HEDDLE_FULL_INLINE void AllGatherCall::before() {
  if (!in_place()) copy(input().data(), own(), input().bytes());
}

HEDDLE_FULL_INLINE std::byte* AllGatherCall::own() const {
  return output().data() + m_blocks.first(rank()) * element();
}

HEDDLE_FULL_INLINE bool AllGatherCall::in_place() const { return input().data() == own(); }

HEDDLE_FULL_INLINE int AllGatherCall::library(MPI_Request* request) {
  if (!m_blocks.even()) m_blocks.to_mpi(element());
  const MPI_Comm all = comm().get();
  const auto mine = static_cast<int>(input().bytes());
  const void* const in = in_place() ? MPI_IN_PLACE : input().library_data();
  void* const out = output().library_data();
  if (m_blocks.even())
    return request == nullptr
               ? MPI_Allgather(in, mine, MPI_BYTE, out, mine, MPI_BYTE, all)
               : MPI_Iallgather(in, mine, MPI_BYTE, out, mine, MPI_BYTE, all, request);
  return request == nullptr ? MPI_Allgatherv(in, mine, MPI_BYTE, out, m_blocks.mpi_counts(),
                                             m_blocks.mpi_firsts(), MPI_BYTE, all)
                            : MPI_Iallgatherv(in, mine, MPI_BYTE, out, m_blocks.mpi_counts(),
                                              m_blocks.mpi_firsts(), MPI_BYTE, all, request);
}

HEDDLE_FULL_INLINE std::unique_ptr<Call> AllGatherCall::moved() {
  return std::make_unique<AllGatherCall>(std::move(*this));
}

}  // namespace heddle::inline v0::impl
