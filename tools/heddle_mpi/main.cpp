// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors

/// @file
/// libheddle_mpi.so: packs the strided messages of programs that do not know it.
///
///     mpiexec -x LD_PRELOAD=/path/libheddle_mpi.so program          Open MPI
///     mpiexec -env LD_PRELOAD /path/libheddle_mpi.so program        MPICH
///
/// It answers MPI_Pack and MPI_Unpack where the datatype is nested loops that lead upwards, over
/// less than 2 GiB of memory of the host, and MPI_Send, MPI_Recv, MPI_Isend and MPI_Irecv where
/// these are also of more than one run and a table of measured gains says that packing is faster
/// for such a call; while packed messages are on their way, the calls that complete requests, too.
/// All else is the MPI library's. What is sent is the same bytes either way, so that only one side
/// of a message need have it. Datatypes are looked at when they are committed, and forgotten when
/// the program calls MPI_Type_free, in C, or their handle is another one's.
///
/// Fortran: the calls of Open MPI's go past it, all of them. Those of MPICH are as C's, but that
/// messages which do not block are the library's.
///
/// With Open MPI a receive on a communicator whose errors return is the library's: in one piece it
/// would let a message that is too long for it write past its end.
///
/// Not for programs whose requests are started in C and waited for in another language, whose calls
/// may go past it, nor for those that free the request of a receive which is on its way: what comes
/// is not there when another message says so. Of a program that sends from memory of a device, the
/// device's library must be loaded before its datatypes are committed; nothing is packed then,
/// which the report says. A handle that is no datatype any more may be reported on MPI_COMM_WORLD,
/// where the call's communicator would be.
///
///     HEDDLE_MPI_OFF=1          all is the MPI library's, whatever else is set
///     HEDDLE_MPI_TABLE=FILE     tables of gains for this machine, as bench_comm_strided prints
///                               them: for calls that block, and for those that do not (one
///                               alone is for both); `always` and `never` do without
///     HEDDLE_MPI_REPORT=FILE    which process did what is added to FILE in MPI_Finalize, and an
///                               estimate of the time that was gained; `-` prints it

#include <cstdio>
#include <cstdlib>
#include <exception>
#include <string>
#include <string_view>

#include <mpi.h>

#include <heddle/core/text.hpp>

#include "../process_name.hpp"
#include "answers.hpp"
#include "interposer.hpp"

namespace {

/// What `work` returns. The program ends where it throws.
auto ended_by_errors(auto work) {
  try {
    return work();
  } catch (const std::exception& error) {
    std::fprintf(stderr, "libheddle_mpi: %s\n", error.what());
    std::exit(1);
  }
}

}  // namespace

heddle_mpi::Interposer* heddle_mpi::make_interposer() {
  return ended_by_errors([] { return new Interposer; });
}

namespace {

using heddle_mpi::interposer;
using heddle_mpi::KnownTypes;
using heddle_mpi::Requests;

void report() {
  const char* const name = std::getenv("HEDDLE_MPI_REPORT");
  if (name == nullptr) return;
  int rank = 0;
  PMPI_Comm_rank(MPI_COMM_WORLD, &rank);
  const std::string first = heddle::text("heddle_mpi rank ", rank, ": ");
  const heddle_mpi::Counters& counters = interposer().counters;
  const std::string lines = heddle::text(first, heddle_tools::ProcessName().text(), '\n') +
                            counters.lines(first) +
                            heddle::text(first, "about ", counters.gained(),
                                         " s gained by packing: an estimate, from the table of "
                                         "gains and the time of packing alone\n") +
                            heddle::text(first, "holds ", interposer().types.count(),
                                         " datatypes and ", Requests::count(), " requests",
                                         interposer().types.left_for_a_device()
                                             ? "; a device's driver is loaded: datatypes are left "
                                               "to the library"
                                             : "",
                                         '\n');
  const bool printed = std::string_view(name) == "-";
  std::FILE* const file = printed ? stdout : std::fopen(name, "a");
  if (file == nullptr) {
    std::fprintf(stderr, "libheddle_mpi: cannot write the report to %s\n", name);
    return;
  }
  const bool written = std::fwrite(lines.data(), 1, lines.size(), file) == lines.size();
  const bool flushed = std::fflush(file) == 0;
  const bool closed = printed || std::fclose(file) == 0;
  if (!written || !flushed || !closed)
    std::fprintf(stderr, "libheddle_mpi: cannot write the report to %s\n", name);
}

}  // namespace

// All else stays inside: a program may use Heddle itself, of another version.
#pragma GCC visibility push(default)
extern "C" {

/// Datatypes and requests that the interposer knows of at the moment. For tests, which find it by
/// its name.
unsigned long heddle_mpi_held() { return interposer().types.count() + Requests::count(); }

/// Datatypes that are committed from now on are chosen for by `table`, which is what
/// HEDDLE_MPI_TABLE may be, or null; messages of several items of any. For benchmarks and tests,
/// while nothing else calls MPI; ends the program where the file is no table.
void heddle_mpi_choose_by(const char* table) {
  ended_by_errors([&] { interposer().gains = heddle_mpi::gains_of(table); });
}

int MPI_Type_commit(MPI_Datatype* type) {
  const int code = PMPI_Type_commit(type);
  heddle_mpi::Interposer& all = interposer();
  if (code != MPI_SUCCESS || !all.on) return code;
  all.types.learn(*type, all.gains);
  return code;
}

int MPI_Type_dup(MPI_Datatype old, MPI_Datatype* type) {
  const int code = PMPI_Type_dup(old, type);
  if (code != MPI_SUCCESS || KnownTypes::none()) return code;
  heddle_mpi::Interposer& all = interposer();
  if (all.types.find(old) != nullptr) all.types.learn(*type, all.gains);  // it is committed, too
  return code;
}

int MPI_Type_free(MPI_Datatype* type) {
  if (!KnownTypes::none()) interposer().types.release(*type);
  return PMPI_Type_free(type);
}

int MPI_Finalize() {
  interposer().freed.let_go();
  if (interposer().on) report();
  return PMPI_Finalize();
}

int MPI_Pack(const void* from, int count, MPI_Datatype type, void* to, int size, int* position,
             MPI_Comm comm) {
  if (!KnownTypes::may_know(type)) return PMPI_Pack(from, count, type, to, size, position, comm);
  return heddle_mpi::pack(from, count, type, to, size, position, comm);
}

int MPI_Unpack(const void* from, int size, int* position, void* to, int count, MPI_Datatype type,
               MPI_Comm comm) {
  if (!KnownTypes::may_know(type)) return PMPI_Unpack(from, size, position, to, count, type, comm);
  return heddle_mpi::unpack(from, size, position, to, count, type, comm);
}

int MPI_Send(const void* from, int count, MPI_Datatype type, int to, int tag, MPI_Comm comm) {
  if (!KnownTypes::may_know(type)) return PMPI_Send(from, count, type, to, tag, comm);
  return heddle_mpi::send(from, count, type, to, tag, comm);
}

int MPI_Recv(void* to, int count, MPI_Datatype type, int from, int tag, MPI_Comm comm,
             MPI_Status* wanted) {
  if (!KnownTypes::may_know(type)) return PMPI_Recv(to, count, type, from, tag, comm, wanted);
  return heddle_mpi::recv(to, count, type, from, tag, comm, wanted);
}

int MPI_Isend(const void* from, int count, MPI_Datatype type, int to, int tag, MPI_Comm comm,
              MPI_Request* request) {
  if (!KnownTypes::may_know(type)) return PMPI_Isend(from, count, type, to, tag, comm, request);
  return heddle_mpi::isend(from, count, type, to, tag, comm, request);
}

int MPI_Irecv(void* to, int count, MPI_Datatype type, int from, int tag, MPI_Comm comm,
              MPI_Request* request) {
  if (!KnownTypes::may_know(type)) return PMPI_Irecv(to, count, type, from, tag, comm, request);
  return heddle_mpi::irecv(to, count, type, from, tag, comm, request);
}

int MPI_Wait(MPI_Request* request, MPI_Status* wanted) {
  if (Requests::none()) return PMPI_Wait(request, wanted);
  return heddle_mpi::wait(request, wanted);
}

int MPI_Test(MPI_Request* request, int* flag, MPI_Status* wanted) {
  if (Requests::none()) return PMPI_Test(request, flag, wanted);
  return heddle_mpi::test(request, flag, wanted);
}

int MPI_Waitall(int count, MPI_Request* requests, MPI_Status* wanted) {
  if (Requests::none()) return PMPI_Waitall(count, requests, wanted);
  return heddle_mpi::waitall(count, requests, wanted);
}

int MPI_Testall(int count, MPI_Request* requests, int* flag, MPI_Status* wanted) {
  if (Requests::none()) return PMPI_Testall(count, requests, flag, wanted);
  return heddle_mpi::testall(count, requests, flag, wanted);
}

int MPI_Waitany(int count, MPI_Request* requests, int* index, MPI_Status* wanted) {
  if (Requests::none()) return PMPI_Waitany(count, requests, index, wanted);
  return heddle_mpi::waitany(count, requests, index, wanted);
}

int MPI_Testany(int count, MPI_Request* requests, int* index, int* flag, MPI_Status* wanted) {
  if (Requests::none()) return PMPI_Testany(count, requests, index, flag, wanted);
  return heddle_mpi::testany(count, requests, index, flag, wanted);
}

int MPI_Waitsome(int count, MPI_Request* requests, int* done, int* indices, MPI_Status* wanted) {
  if (Requests::none()) return PMPI_Waitsome(count, requests, done, indices, wanted);
  return heddle_mpi::waitsome(count, requests, done, indices, wanted);
}

int MPI_Testsome(int count, MPI_Request* requests, int* done, int* indices, MPI_Status* wanted) {
  if (Requests::none()) return PMPI_Testsome(count, requests, done, indices, wanted);
  return heddle_mpi::testsome(count, requests, done, indices, wanted);
}

int MPI_Request_get_status(MPI_Request request, int* flag, MPI_Status* wanted) {
  if (Requests::none()) return PMPI_Request_get_status(request, flag, wanted);
  return heddle_mpi::request_get_status(request, flag, wanted);
}

int MPI_Request_free(MPI_Request* request) {
  if (Requests::none()) return PMPI_Request_free(request);
  return heddle_mpi::request_free(request);
}

}  // extern "C"
#pragma GCC visibility pop
