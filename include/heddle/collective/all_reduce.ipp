// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// Definitions of all_reduce.hpp.

#include <memory>
#include <utility>

#include <mpi.h>

#include <heddle/collective/all_reduce.hpp>
#include <heddle/collective/call_options.hpp>
#include <heddle/collective/impl/all_reduce_call.hpp>
#include <heddle/collective/impl/call_view.hpp>
#include <heddle/collective/internal/block_counts.hpp>
#include <heddle/collective/internal/call.hpp>
#include <heddle/collective/internal/instance.hpp>
#include <heddle/collective/internal/view_ref.hpp>
#include <heddle/collective/prepared.hpp>
#include <heddle/collective/request.hpp>
#include <heddle/comm/communicator.hpp>
#include <heddle/core/contract.hpp>
#include <heddle/core/linkage.hpp>
#include <heddle/schedule/collective/algorithm.hpp>

namespace heddle::inline v0::impl {

HEDDLE_FULL_INLINE AllReduceCall::AllReduceCall(const CallArguments& with, const ViewRef& view)
    : InPlaceCall("heddle::collective::all_reduce", schedule::Collective::all_reduce, with, view) {}

HEDDLE_FULL_INLINE void AllReduceCall::check() {
  prepare(ViewUse::updates);
  expect_no_counts();
}

HEDDLE_FULL_INLINE int AllReduceCall::library(MPI_Request* request) {
  const auto count = static_cast<int>(m_data.size());
  const auto [type, operation] = by().by_mpi();
  const MPI_Comm all = comm().get();
  return request == nullptr
             ? MPI_Allreduce(MPI_IN_PLACE, m_data.library_data(), count, type, operation, all)
             : MPI_Iallreduce(MPI_IN_PLACE, m_data.library_data(), count, type, operation, all,
                              request);
}

HEDDLE_FULL_INLINE std::unique_ptr<Call> AllReduceCall::moved() {
  return std::make_unique<AllReduceCall>(std::move(*this));
}

HEDDLE_FULL_INLINE void all_reduce(const Instance& by, const ViewRef& view,
                                   const Communicator& comm, const CallOptions& options,
                                   ContractLevel level) {
  AllReduceCall({by, comm, options, level}, view).perform();
}

HEDDLE_FULL_INLINE Request start_all_reduce(const Instance& by, const ViewRef& view,
                                            const Communicator& comm, const CallOptions& options,
                                            ContractLevel level) {
  return AllReduceCall({by, comm, options, level}, view).start();
}

HEDDLE_FULL_INLINE Prepared prepare_all_reduce(const Instance& by, const ViewRef& view,
                                               const Communicator& comm, const CallOptions& options,
                                               ContractLevel level) {
  return Prepared(AllReduceCall({by, comm, options, level}, view));
}

}  // namespace heddle::inline v0::impl
