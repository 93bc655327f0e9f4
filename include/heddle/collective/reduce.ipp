// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// Definitions of reduce.hpp.

#include <memory>
#include <utility>

#include <mpi.h>

#include <heddle/collective/impl/call_view.hpp>
#include <heddle/collective/internal/block_counts.hpp>
#include <heddle/collective/internal/call.hpp>
#include <heddle/collective/internal/instance.hpp>
#include <heddle/collective/internal/view_ref.hpp>
#include <heddle/collective/reduce.hpp>
#include <heddle/comm/communicator.hpp>
#include <heddle/core/index.hpp>
#include <heddle/core/linkage.hpp>
#include <heddle/schedule/collective/algorithm.hpp>

namespace heddle::inline v0::impl {

HEDDLE_FULL_INLINE ReduceCall::ReduceCall(const CallArguments& with, const ViewRef& view, Rank root)
    : InPlaceCall("heddle::collective::reduce", schedule::Collective::reduce, with, view, root) {}

HEDDLE_FULL_INLINE void ReduceCall::check() {
  expect_no_counts();
  expect_root(m_root);
  prepare(at_root() ? ViewUse::updates : ViewUse::reads);
}

HEDDLE_FULL_INLINE int ReduceCall::library(MPI_Request* request) {
  const auto count = static_cast<int>(m_data.size());
  const auto to = static_cast<int>(m_root.value);
  const auto [type, operation] = by().by_mpi();
  const MPI_Comm all = comm().get();
  void* const out = m_data.library_data();
  const void* const in = at_root() ? MPI_IN_PLACE : out;
  return request == nullptr ? MPI_Reduce(in, out, count, type, operation, to, all)
                            : MPI_Ireduce(in, out, count, type, operation, to, all, request);
}

HEDDLE_FULL_INLINE std::unique_ptr<Call> ReduceCall::moved() {
  return std::make_unique<ReduceCall>(std::move(*this));
}

}  // namespace heddle::inline v0::impl
