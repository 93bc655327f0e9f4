// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// said(): what ranks are told that do not make the same call, for tests of agreement.

#include <string>

#include <mpi.h>

#include <heddle/comm/communicator.hpp>
#include <heddle/core/error.hpp>
#include <heddle/core/index.hpp>

namespace heddle::test {

/// The contract_error where rank 1 makes the `other` call and the others make `usual`, each given
/// a communicator of all ranks; "nothing" where there is none.
template <class Usual, class Other>
[[nodiscard]] std::string said(Usual&& usual, Other&& other) {
  const Communicator comm(MPI_COMM_WORLD);
  try {
    comm.rank() == Rank{1} ? other(comm) : usual(comm);
  } catch (const contract_error& error) {
    return error.what();
  }
  return "nothing";
}

}  // namespace heddle::test
