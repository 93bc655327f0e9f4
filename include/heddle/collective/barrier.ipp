// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// Definitions of barrier.hpp.

#include <memory>
#include <span>
#include <utility>

#include <mpi.h>

#include <heddle/collective/barrier.hpp>
#include <heddle/collective/impl/call_view.hpp>
#include <heddle/collective/impl/performer.hpp>
#include <heddle/collective/internal/call.hpp>
#include <heddle/collective/internal/instance.hpp>
#include <heddle/collective/internal/view_ref.hpp>
#include <heddle/comm/communicator.hpp>
#include <heddle/core/linkage.hpp>
#include <heddle/core/units.hpp>
#include <heddle/schedule/collective/algorithm.hpp>

namespace heddle::inline v0::impl {

HEDDLE_FULL_INLINE BarrierCall::BarrierCall(const CallArguments& with)
    : Call("heddle::collective::barrier", schedule::Collective::barrier, with) {}

HEDDLE_FULL_INLINE void BarrierCall::check() { expect_no_counts(); }

HEDDLE_FULL_INLINE std::span<CallView> BarrierCall::views() { return {}; }

HEDDLE_FULL_INLINE Bytes BarrierCall::bytes() const { return 0; }

HEDDLE_FULL_INLINE PerformerKey BarrierCall::key() const { return key_of(ViewRef()); }

HEDDLE_FULL_INLINE CallMemory BarrierCall::memory() const { return {}; }

HEDDLE_FULL_INLINE bool BarrierCall::knows() const { return true; }

HEDDLE_FULL_INLINE int BarrierCall::library(MPI_Request* request) {
  return request == nullptr ? MPI_Barrier(comm().get()) : MPI_Ibarrier(comm().get(), request);
}

HEDDLE_FULL_INLINE std::unique_ptr<Call> BarrierCall::moved() {
  return std::make_unique<BarrierCall>(std::move(*this));
}

}  // namespace heddle::inline v0::impl
