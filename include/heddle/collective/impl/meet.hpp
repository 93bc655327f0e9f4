// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// How the ranks of a collective call wait for one another before, and beside, what they do
/// together.

#include <string_view>

#include <mpi.h>

#include <heddle/collective/impl/performer.hpp>
#include <heddle/comm/agreement.hpp>
#include <heddle/comm/check.hpp>
#include <heddle/comm/communicator.hpp>
#include <heddle/comm/impl/roll_call.hpp>
#include <heddle/core/contract.hpp>
#include <heddle/core/text.hpp>
#include <heddle/core/units.hpp>
#include <heddle/execute/clock.hpp>
#include <heddle/execute/execute_options.hpp>
#include <heddle/execute/idle.hpp>

namespace heddle::inline v0 {
namespace impl {

/// check_together() for the call `where`, which itself waits for `watchdog` seconds. Furthers the
/// requests for which ranks that are not there yet may be waiting.
template <class Check, class Describe>
void agree(const Communicator& comm, std::string_view where, Seconds watchdog, Check&& check,
           Describe&& describe) {
  check_together(comm, where, check, describe, contract_level, watchdog,
                 [&] { comm.template attached<CallLines>().further(); });
}
/// The same for a call that has its communicator and its options.
template <class Call, class Check, class Describe>
void agree(const Call& call, Check&& check, Describe&& describe) {
  agree(*call.comm, Call::where, call.options.execute.watchdog, check, describe);
}

/// Waits for `request`, an operation of MPI's that all ranks take part in, furthering the requests
/// that other ranks wait for before they come to it. If it throws, the operation goes on, because
/// MPI cannot cancel it: its memory must stay, and the communicator is left to MPI.
template <class Call>
void complete(const Call& call, MPI_Request& request) {
  const ExecuteOptions& options = call.options.execute;
  auto& others = call.comm->template attached<CallLines>();
  Waiting waiting(options.idle);
  const Seconds since = steady_seconds();
  for (int done = 0;;) {
    check(MPI_Test(&request, &done, MPI_STATUS_IGNORE), Call::where);
    if (done != 0) return;
    others.further();
    waiting();
    const bool late = options.watchdog > 0 && steady_seconds() - since > options.watchdog;
    const bool asks = waiting.polls() % 64 == 0 || options.idle == Idle::nap;
    if (!late && !(asks && RollCall::begun(*call.comm))) continue;
    call.comm->leave_to_mpi();
    throw RollCall(*call.comm)
        .stuck(text(Call::where, ", rank ", call.comm->rank()), options, late);
  }
}

/// Returns when all ranks have come to the same call: before what must be done together, in which
/// nobody furthers requests.
template <class Call>
void meet(const Call& call) {
  MPI_Request request = MPI_REQUEST_NULL;
  check(MPI_Ibarrier(call.comm->get(), &request), Call::where);
  complete(call, request);
}

}  // namespace impl
}  // namespace heddle::inline v0
