// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors

/// @file
/// A program that knows nothing of Heddle: on each rank two threads make datatypes, send with them
/// in a ring, and free them, also one with which the other thread waits. Prints a sum over all that
/// has arrived, from rank 0.

#include <array>
#include <cstdint>
#include <iostream>
#include <thread>
#include <vector>

#include <mpi.h>

namespace {

constexpr int threads = 2;
constexpr int rounds = 200;

/// Sends and receives, and adds up what comes. Datatypes, sizes and calls differ by round.
std::uint64_t rounds_of(int thread, int rank, int size, MPI_Comm comm) {
  std::uint64_t sum = 0;
  std::vector<std::uint64_t> data(40000), got(40000);
  for (int round = 0; round < rounds; ++round) {
    const int blocks = 1 + 37 * round % 4000;
    MPI_Datatype type = MPI_DATATYPE_NULL;
    MPI_Type_vector(blocks, 1 + round % 3, 3 + round % 5, MPI_UINT64_T, &type);
    MPI_Type_commit(&type);
    for (std::size_t i = 0; i < data.size(); ++i)
      data[i] = i * 2654435761u + static_cast<std::uint64_t>(round * 100 + rank * 10 + thread);
    std::array<MPI_Request, 2> requests;
    const int next = (rank + 1) % size, last = (rank + size - 1) % size;
    MPI_Irecv(got.data(), 1, type, last, round, comm, &requests[0]);
    MPI_Isend(data.data(), 1, type, next, round, comm, &requests[1]);
    MPI_Type_free(&type);
    if (round % 2 == 0)
      MPI_Waitall(2, requests.data(), MPI_STATUSES_IGNORE);
    else
      for (int done = 0; done < 2; ++done) {
        int index = 0;
        MPI_Waitany(2, requests.data(), &index, MPI_STATUS_IGNORE);
      }
    for (std::size_t i = 0; i < got.size(); ++i) sum = sum * 31 + got[i];
  }
  return sum;
}

/// This thread receives with a datatype that another one frees as soon as it knows that the receive
/// has begun, and what it held may be another datatype's by then.
std::uint64_t freed_by_another(int rank, MPI_Comm comm) {
  std::uint64_t sum = 0;
  std::vector<std::uint64_t> data(1000), got(3000);
  for (int round = 0; round < 20; ++round) {
    for (std::size_t i = 0; i < data.size(); ++i)
      data[i] = i * 2654435761u + static_cast<std::uint64_t>(round);
    MPI_Datatype type = MPI_DATATYPE_NULL;
    MPI_Type_vector(1000, 1, 3, MPI_UINT64_T, &type);
    MPI_Type_commit(&type);
    std::thread other([&] {
      MPI_Ssend(data.data(), 1000, MPI_UINT64_T, rank, round, comm);
      MPI_Datatype freed = type;
      MPI_Type_free(&freed);
      MPI_Type_vector(10, 1, 2, MPI_UINT64_T, &freed);
      MPI_Type_commit(&freed);
      MPI_Type_free(&freed);
    });
    MPI_Recv(got.data(), 1, type, rank, round, comm, MPI_STATUS_IGNORE);
    other.join();
    for (const std::uint64_t value : got) sum = sum * 31 + value;
  }
  return sum;
}

}  // namespace

int main(int argc, char** argv) {
  int provided = MPI_THREAD_SINGLE, rank = 0, size = 1;
  MPI_Init_thread(&argc, &argv, MPI_THREAD_MULTIPLE, &provided);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  std::array<MPI_Comm, threads> comms;
  for (MPI_Comm& comm : comms) MPI_Comm_dup(MPI_COMM_WORLD, &comm);
  std::array<std::uint64_t, threads> sums{};
  const auto work = [&](int thread) {
    const auto t = static_cast<std::size_t>(thread);
    sums[t] = rounds_of(thread, rank, size, comms[t]);
  };
  if (provided == MPI_THREAD_MULTIPLE) {
    std::thread other(work, 1);
    work(0);
    other.join();
    sums[1] += freed_by_another(rank, comms[0]);
  } else {
    work(0);
    work(1);
  }
  std::uint64_t mine = sums[0] * 7 + sums[1], all = 0;
  MPI_Reduce(&mine, &all, 1, MPI_UINT64_T, MPI_SUM, 0, MPI_COMM_WORLD);
  if (rank == 0) std::cout << "arrived: " << all << std::endl;
  for (MPI_Comm& comm : comms) MPI_Comm_free(&comm);
  MPI_Finalize();
}
