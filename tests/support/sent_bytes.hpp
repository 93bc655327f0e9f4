// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// Counts the bytes that this rank gives MPI to send, and the messages of datatypes that MPI
/// gathers itself, whoever does. Include it in one source of a program: it defines MPI_Isend in the
/// place of the library's, which has it under another name too.

#include <cstdint>
#include <map>

#include <mpi.h>

namespace heddle::test {

/// Bytes of all messages since count_sent_bytes().
inline std::uint64_t sent_bytes = 0;
/// Number of these messages.
inline std::uint64_t sent_messages = 0;
/// The same by receiver, which is numbered as in MPI_COMM_WORLD.
inline std::map<int, std::uint64_t> sent_to;

/// Messages among them of other datatypes than MPI's own.
inline std::uint64_t gathered_messages = 0;

/// Counts from zero.
inline void count_sent_bytes() {
  sent_bytes = 0;
  sent_messages = 0;
  gathered_messages = 0;
  sent_to.clear();
}

/// Counts a message to rank `to` of `comm`.
inline void count_sent_bytes(std::uint64_t bytes, int to, MPI_Comm comm) {
  MPI_Group of_comm = MPI_GROUP_NULL, of_all = MPI_GROUP_NULL;
  int receiver = MPI_UNDEFINED;
  MPI_Comm_group(comm, &of_comm);
  MPI_Comm_group(MPI_COMM_WORLD, &of_all);
  MPI_Group_translate_ranks(of_comm, 1, &to, of_all, &receiver);
  MPI_Group_free(&of_comm);
  MPI_Group_free(&of_all);
  sent_bytes += bytes;
  ++sent_messages;
  sent_to[receiver] += bytes;
}

}  // namespace heddle::test

extern "C" int MPI_Isend(const void* data, int count, MPI_Datatype type, int to, int tag,
                         MPI_Comm comm, MPI_Request* request) {
  int size = 0;
  MPI_Type_size(type, &size);
  heddle::test::count_sent_bytes(
      static_cast<std::uint64_t>(count) * static_cast<std::uint64_t>(size), to, comm);
  int integers = 0, addresses = 0, types = 0, combiner = MPI_COMBINER_NAMED;
  MPI_Type_get_envelope(type, &integers, &addresses, &types, &combiner);
  if (combiner != MPI_COMBINER_NAMED) ++heddle::test::gathered_messages;
  return PMPI_Isend(data, count, type, to, tag, comm, request);
}
