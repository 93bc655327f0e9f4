// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// How the ranks of a collective call wait for one another before, and beside, what they do
/// together.

#include <string_view>

#include <mpi.h>

#include <heddle/comm/agreement.hpp>
#include <heddle/comm/communicator.hpp>
#include <heddle/core/contract.hpp>
#include <heddle/core/internal/function_ref.hpp>
#include <heddle/core/linkage.hpp>
#include <heddle/core/units.hpp>
#include <heddle/execute/execute_options.hpp>

namespace heddle::inline v0 {
namespace impl {

class Call;

/// check_together() for the call `where`, which itself waits for `watchdog` seconds. Furthers the
/// requests for which ranks that are not there yet may be waiting.
void agree(const Communicator& comm, std::string_view where, Seconds watchdog,
           FunctionRef<void()> check, FunctionRef<CollectiveCall()> describe,
           ContractLevel level = contract_level);

/// Waits for `request`, an operation of MPI's that all ranks take part in, furthering the requests
/// that other ranks wait for before they come to it. If it throws, the operation goes on, because
/// MPI cannot cancel it: its memory must stay, and the communicator is left to MPI.
void complete(const Communicator& comm, const char* where, const ExecuteOptions& options,
              MPI_Request& request);

/// Returns when all ranks have come to the same call: before what must be done together, in which
/// nobody furthers requests.
void meet(const Call& call);

}  // namespace impl
}  // namespace heddle::inline v0

#if HEDDLE_DEFINES_COLLECTIVE
#include <heddle/collective/internal/meet.ipp>
#endif
