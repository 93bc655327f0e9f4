// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// Definitions of same_ranks.hpp.

#include <mpi.h>

#include <heddle/comm/check.hpp>
#include <heddle/comm/communicator.hpp>
#include <heddle/core/linkage.hpp>
#include <heddle/tensor/impl/same_ranks.hpp>

namespace heddle::inline v0::impl {

HEDDLE_FULL_INLINE bool same_ranks(const Communicator& a, const Communicator& b) {
  if (&a == &b) return true;
  for (const Communicator* const each : {&a, &b}) each->expect_not_empty("heddle::Sharded");
  int result = MPI_UNEQUAL;
  check(MPI_Comm_compare(a.get(), b.get(), &result), "heddle::tensor::same_ranks");
  return result == MPI_IDENT || result == MPI_CONGRUENT;
}

}  // namespace heddle::inline v0::impl
