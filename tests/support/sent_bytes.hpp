// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// Counts the bytes that this rank gives MPI to send, whoever does. Include it in one source of a
/// program: it defines MPI_Isend in the place of the library's, which has it under another name
/// too.

#include <cstdint>

#include <mpi.h>

namespace heddle::test {

/// Bytes of all messages so far. Set it to zero before what is counted.
inline std::uint64_t sent_bytes = 0;

}  // namespace heddle::test

extern "C" int MPI_Isend(const void* data, int count, MPI_Datatype type, int to, int tag,
                         MPI_Comm comm, MPI_Request* request) {
  int size = 0;
  MPI_Type_size(type, &size);
  heddle::test::sent_bytes += static_cast<std::uint64_t>(count) * static_cast<std::uint64_t>(size);
  return PMPI_Isend(data, count, type, to, tag, comm, request);
}
