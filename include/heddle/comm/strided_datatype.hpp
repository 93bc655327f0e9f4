// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// strided_block_of(): finds the bytes that an MPI datatype covers, if nested loops can describe
/// them. It needs only MPI, and uses MPI's PMPI functions, so that an interposer can call it.

#include <cstdint>
#include <optional>

#include <mpi.h>

#include <heddle/core/linkage.hpp>
#include <heddle/layout/strided_block.hpp>

namespace heddle::inline v0 {

/// Returns the distance in bytes between consecutive items of `type` in an array.
[[nodiscard]] std::int64_t extent_of(MPI_Datatype type);

/// Returns the bytes of one item of `type`, in the order in which MPI packs them. For `count` items
/// use `.repeated(count, extent_of(type))`.
///
/// Returns nullopt if nested loops cannot describe the datatype. Examples are a struct or an
/// indexed type whose blocks have different lengths or distances, a distributed array, a pair with
/// a gap, and a datatype created with counts of type MPI_Count.
/// @throws communication_error if the handle is not a datatype, contract_error if offsets do not
///         fit in 64 bits.
[[nodiscard]] std::optional<StridedBlock> strided_block_of(MPI_Datatype type);

}  // namespace heddle::inline v0

#if HEDDLE_DEFINES_COMM
#include <heddle/comm/strided_datatype.ipp>
#endif
