// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// Definitions of broadcast.hpp.

#include <memory>
#include <utility>

#include <mpi.h>

#include <heddle/collective/broadcast.hpp>
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

HEDDLE_FULL_INLINE BroadcastCall::BroadcastCall(const CallArguments& with, const ViewRef& view,
                                                Rank root)
    : InPlaceCall("heddle::collective::broadcast", schedule::Collective::broadcast, with, view,
                  root) {}

HEDDLE_FULL_INLINE void BroadcastCall::check() {
  expect_no_counts();
  expect_root(m_root);
  // A codec changes what the root has, too.
  const ViewUse of_root = options().codec ? ViewUse::updates : ViewUse::reads;
  prepare(at_root() ? of_root : ViewUse::writes);
}

HEDDLE_FULL_INLINE bool BroadcastCall::knows() const { return fits_int(m_data.bytes()); }

HEDDLE_FULL_INLINE int BroadcastCall::library(MPI_Request* request) {
  const auto bytes = static_cast<int>(m_data.bytes());
  const auto from = static_cast<int>(m_root.value);
  const MPI_Comm all = comm().get();
  return request == nullptr
             ? MPI_Bcast(m_data.library_data(), bytes, MPI_BYTE, from, all)
             : MPI_Ibcast(m_data.library_data(), bytes, MPI_BYTE, from, all, request);
}

HEDDLE_FULL_INLINE std::unique_ptr<Call> BroadcastCall::moved() {
  return std::make_unique<BroadcastCall>(std::move(*this));
}

}  // namespace heddle::inline v0::impl
