// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// emit_mpi(): prints a Schedule as a C++ file that needs MPI alone.

#include <string>

#include <heddle/core/linkage.hpp>
#include <heddle/schedule/schedule.hpp>

namespace heddle::inline v0::systems {

/// The options of emit_mpi().
struct EmitOptions {
  std::string name = "emitted";  ///< the namespace of the emitted program, a C++ identifier
};

/// Returns the text of one C++17 file that performs `schedule` with MPI and without Heddle. The
/// file can be included by one or more sources of a program. It has:
///
/// - `Work`, an abstract class with a function for each of F, I, W, B, update and combine. The user
///   derives from it. A function gets a Task: stage, item, and the memory of its uses. The combine
///   of numbers is implemented. A copy within a rank is a memcpy.
/// - `Program`, which allocates the buffers of its rank, each of the size that the schedule states.
///   `step(work)` performs the list once, and `finish()` completes the messages in flight.
///   `buffers()` returns the buffers of the rank, in the order of the schedule.
///
/// The file has one function for each rank, with the actions that slice() derives, in their order.
/// A message is posted at its place in the list, by an MPI_Isend or MPI_Irecv whose tag is the
/// lane. It is awaited just before the first action that conflicts with it, in the same step or the
/// next one, as an Executor does. After each computation MPI is called to make progress.
///
/// @throws contract_error for what plain MPI calls do not express. The error names the action or
///         buffer, and what to do instead: casts, groups that are not expanded, user actions, ranks
///         that share memory, combines of encoded messages, messages above 2^31 - 1 bytes, and a
///         `name` that is not an identifier.
[[nodiscard]] std::string emit_mpi(const Schedule& schedule, const EmitOptions& options = {});

}  // namespace heddle::inline v0::systems

#if HEDDLE_DEFINES_SYSTEMS
#include <heddle/systems/mpirigen/emit_mpi.ipp>
#endif
