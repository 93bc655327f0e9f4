// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// same_ranks(): may tensors of two communicators take part in one exchange?

#include <mpi.h>

#include <heddle/comm/check.hpp>
#include <heddle/comm/communicator.hpp>

namespace heddle::inline v0::impl {

/// Returns true if both are the same ranks in the same order.
[[nodiscard]] inline bool same_ranks(const Communicator& a, const Communicator& b) {
  if (&a == &b) return true;
  for (const Communicator* const each : {&a, &b}) each->expect_not_empty("heddle::Sharded");
  int result = MPI_UNEQUAL;
  check(MPI_Comm_compare(a.get(), b.get(), &result), "heddle::tensor::same_ranks");
  return result == MPI_IDENT || result == MPI_CONGRUENT;
}

}  // namespace heddle::inline v0::impl
