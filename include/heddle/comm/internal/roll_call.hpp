// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// RollCall: finds the ranks that do not come to a collective operation of MPI.

#include <string>
#include <vector>

#include <mpi.h>

#include <heddle/comm/communicator.hpp>
#include <heddle/core/error.hpp>
#include <heddle/core/index.hpp>
#include <heddle/core/linkage.hpp>
#include <heddle/execute/execute_options.hpp>

namespace heddle::inline v0 {
namespace impl {

/// The ranks that wait in an operation of MPI's tell each other that they are there, once the first
/// of them gives it up. MPI itself does not say which ranks are missing. The communicator cannot be
/// used afterwards.
class RollCall {
 public:
  explicit RollCall(const Communicator& comm) : RollCall(comm, comm.get()) {}
  /// Errors give the missing ranks the numbers that they have in `all`, which has all ranks of
  /// `comm`.
  RollCall(const Communicator& comm, MPI_Comm all) : m_comm(&comm), m_all(all) {}

  /// Returns true if another rank has given up an operation on the communicator.
  [[nodiscard]] static bool begun(const Communicator& comm);

  /// Tells the other ranks that this one is here, waits for their words for at most
  /// `options.grace`, and returns the error for the operation at `where`. `late` says that this
  /// rank's watchdog ended the wait; otherwise the call of another rank did.
  [[nodiscard]] communication_error stuck(std::string where, const ExecuteOptions& options,
                                          bool late, const char* fix = same_order);

 private:
  static constexpr int tag = 32766;  ///< that of Agreement is 32767
  static constexpr const char* same_order =
      "make the call on all ranks of the communicator, in the same order, or raise "
      "ExecuteOptions::watchdog";

  /// Returns the other ranks that have told nothing within `grace` seconds.
  [[nodiscard]] std::vector<int> missing(Seconds grace) const;
  /// Returns the numbers of these ranks in `m_all`.
  [[nodiscard]] std::vector<Rank> named(const std::vector<int>& ranks) const;

  const Communicator* m_comm;
  MPI_Comm m_all;
};

}  // namespace impl
}  // namespace heddle::inline v0

#if HEDDLE_DEFINES_COMM
#include <heddle/comm/internal/roll_call.ipp>
#endif
