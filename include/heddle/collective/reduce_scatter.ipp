// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// Definitions of reduce_scatter.hpp.

#include <cstddef>
#include <memory>
#include <utility>

#include <mpi.h>

#include <heddle/collective/impl/call_view.hpp>
#include <heddle/collective/internal/block_counts.hpp>
#include <heddle/collective/internal/call.hpp>
#include <heddle/collective/internal/instance.hpp>
#include <heddle/collective/internal/view_ref.hpp>
#include <heddle/collective/internal/views.hpp>
#include <heddle/collective/reduce_scatter.hpp>
#include <heddle/comm/communicator.hpp>
#include <heddle/core/linkage.hpp>
#include <heddle/schedule/collective/algorithm.hpp>

namespace heddle::inline v0::impl {

HEDDLE_FULL_INLINE ReduceScatterCall::ReduceScatterCall(const CallArguments& with,
                                                        const ViewRef& input, const ViewRef& output)
    : BlocksCall("heddle::collective::reduce_scatter", schedule::Collective::reduce_scatter, with,
                 input, output) {}

HEDDLE_FULL_INLINE void ReduceScatterCall::check() {
  input().prepare(ViewUse::reads, by(), comm());
  output().prepare(ViewUse::writes, by());
  m_blocks = BlockCounts(where(), input().size(), ranks(), options().counts);
  expect_size(where(), "output", output().view(), m_blocks.count(rank()));
  if (output().data() != own()) output().keep_apart_from(input(), by());
}

HEDDLE_FULL_INLINE CallMemory ReduceScatterCall::memory() const {
  return {input().data(), nullptr};
}

HEDDLE_FULL_INLINE void ReduceScatterCall::after() {
  if (own() != output().data()) copy(own(), output().data(), output().bytes());
}

HEDDLE_FULL_INLINE void ReduceScatterCall::ended() {
  if (m_room.bytes != 0) copy(m_room.data, output().data(), output().bytes());
}

HEDDLE_FULL_INLINE bool ReduceScatterCall::knows() const {
  return by().by_mpi().operation != MPI_OP_NULL && fits_int(m_blocks.total());
}

HEDDLE_FULL_INLINE std::byte* ReduceScatterCall::own() const {
  return input().data() + m_blocks.first(rank()) * element();
}

HEDDLE_FULL_INLINE void* ReduceScatterCall::library_output() {
  auto* const out = static_cast<std::byte*>(output().library_data());
  if (!overlap(static_cast<const std::byte*>(input().library_data()), input().bytes(), out,
               output().bytes()))
    return out;
  if (m_room.bytes == 0) m_room = by().room("heddle::collective::block", output().bytes());
  return m_room.data;
}

HEDDLE_FULL_INLINE int ReduceScatterCall::library(MPI_Request* request) {
  if (!m_blocks.even()) m_blocks.to_mpi(1);
  const auto [type, operation] = by().by_mpi();
  const MPI_Comm all = comm().get();
  void* const in = input().library_data();
  void* const out = library_output();
  if (m_blocks.even()) {
    const auto count = static_cast<int>(m_blocks.count(0));
    return request == nullptr
               ? MPI_Reduce_scatter_block(in, out, count, type, operation, all)
               : MPI_Ireduce_scatter_block(in, out, count, type, operation, all, request);
  }
  return request == nullptr
             ? MPI_Reduce_scatter(in, out, m_blocks.mpi_counts(), type, operation, all)
             : MPI_Ireduce_scatter(in, out, m_blocks.mpi_counts(), type, operation, all, request);
}

HEDDLE_FULL_INLINE std::unique_ptr<Call> ReduceScatterCall::moved() {
  return std::make_unique<ReduceScatterCall>(std::move(*this));
}

}  // namespace heddle::inline v0::impl
