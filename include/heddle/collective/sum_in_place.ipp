// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// Definitions of sum_in_place.hpp.

#include <cstddef>

#include <mpi.h>

#include <heddle/collective/sum_in_place.hpp>
#include <heddle/comm/check.hpp>
#include <heddle/comm/communicator.hpp>
#include <heddle/core/error.hpp>
#include <heddle/core/linkage.hpp>
#include <heddle/core/text.hpp>
#include <heddle/core/units.hpp>

namespace heddle::inline v0 {

HEDDLE_FULL_INLINE MPI_Datatype impl::summable(Scalar type) {
  switch (type) {
    case Scalar::i32: return MPI_INT32_T;
    case Scalar::i64: return MPI_INT64_T;
    case Scalar::f32: return MPI_FLOAT;
    case Scalar::f64: return MPI_DOUBLE;
    default: break;
  }
  throw contract_error(
      {"heddle::sum_in_place", "the elements cannot be added", text("type ", type)});
}

HEDDLE_FULL_INLINE void sum_in_place(void* data, std::size_t count, Scalar type,
                                     const Communicator& comm) {
  const MPI_Datatype datatype = impl::checked_sum(count, type, comm);
  impl::in_pieces(count, [&](std::size_t first, int length) {
    check(MPI_Allreduce(MPI_IN_PLACE, static_cast<std::byte*>(data) + first * size_of(type), length,
                        datatype, MPI_SUM, comm.get()),
          "heddle::sum_in_place");
  });
}

}  // namespace heddle::inline v0
