// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// Definitions of meet.hpp.

#include <string_view>

#include <mpi.h>

#include <heddle/collective/impl/performer.hpp>
#include <heddle/collective/internal/call.hpp>
#include <heddle/collective/internal/meet.hpp>
#include <heddle/comm/agreement.hpp>
#include <heddle/comm/check.hpp>
#include <heddle/comm/communicator.hpp>
#include <heddle/comm/internal/roll_call.hpp>
#include <heddle/core/contract.hpp>
#include <heddle/core/internal/function_ref.hpp>
#include <heddle/core/linkage.hpp>
#include <heddle/core/text.hpp>
#include <heddle/core/units.hpp>
#include <heddle/execute/clock.hpp>
#include <heddle/execute/execute_options.hpp>
#include <heddle/execute/idle.hpp>

namespace heddle::inline v0::impl {

HEDDLE_FULL_INLINE void agree(const Communicator& comm, std::string_view where, Seconds watchdog,
                              FunctionRef<void()> check, FunctionRef<CollectiveCall()> describe,
                              ContractLevel level) {
  check_together(comm, where, check, describe, level, watchdog,
                 [&] { comm.attached<CallLines>().further(); });
}

HEDDLE_FULL_INLINE void complete(const Communicator& comm, const char* where,
                                 const ExecuteOptions& options, MPI_Request& request) {
  auto& others = comm.attached<CallLines>();
  Waiting waiting(options.idle);
  const Seconds since = steady_seconds();
  for (int done = 0;;) {
    check(MPI_Test(&request, &done, MPI_STATUS_IGNORE), where);
    if (done != 0) return;
    others.further();
    waiting();
    const bool late = options.watchdog > 0 && steady_seconds() - since > options.watchdog;
    const bool asks = waiting.polls() % 64 == 0 || options.idle == Idle::nap;
    if (!late && !(asks && RollCall::begun(comm))) continue;
    comm.leave_to_mpi();
    throw RollCall(comm).stuck(text(where, ", rank ", comm.rank()), options, late);
  }
}

HEDDLE_FULL_INLINE void meet(const Call& call) {
  MPI_Request request = MPI_REQUEST_NULL;
  check(MPI_Ibarrier(call.comm().get(), &request), call.where());
  complete(call.comm(), call.where(), call.options().wait, request);
}

}  // namespace heddle::inline v0::impl
