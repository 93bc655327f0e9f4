// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors

/// @file
/// The unchanged program: two ranks exchange the six faces of a cube of doubles by subarray
/// datatypes, with calls of MPI and nothing else. Whether libheddle_mpi.so is loaded before it, it
/// does not know.

#include <algorithm>
#include <array>
#include <cstddef>
#include <iostream>
#include <vector>

#include <mpi.h>

namespace {

constexpr int edge = 256, rounds = 31;

/// Face 2 d + side: the layer of the cube at the low or high end of dimension d, or the one outside
/// of it.
MPI_Datatype face_type(int face, bool inner) {
  const auto d = static_cast<std::size_t>(face / 2);
  const bool high = face % 2 != 0;
  std::array<int, 3> sizes, parts, begins;
  sizes.fill(edge + 2);
  parts.fill(edge);
  begins.fill(1);
  parts[d] = 1;
  begins[d] = inner ? (high ? edge : 1) : (high ? edge + 1 : 0);
  MPI_Datatype type = MPI_DATATYPE_NULL;
  MPI_Type_create_subarray(3, sizes.data(), parts.data(), begins.data(), MPI_ORDER_C, MPI_DOUBLE,
                           &type);
  MPI_Type_commit(&type);
  return type;
}

std::size_t index(std::array<int, 3> place) {
  const std::size_t stride = edge + 2;
  return (static_cast<std::size_t>(place[0]) * stride + static_cast<std::size_t>(place[1])) *
             stride +
         static_cast<std::size_t>(place[2]);
}

/// Whether the layer outside of every face is the opposite one of the other rank.
bool arrived(const std::vector<double>& cells, int peer) {
  for (int face = 0; face < 6; ++face)
    for (int a = 1; a <= edge; ++a)
      for (int b = 1; b <= edge; ++b) {
        const auto at = [&](int layer) {
          std::array<int, 3> place{a, b, 0};
          std::rotate(place.begin(), place.begin() + (2 - face / 2), place.end());
          place[static_cast<std::size_t>(face / 2)] = layer;
          return index(place);
        };
        const bool high = face % 2 != 0;
        if (cells[at(high ? edge + 1 : 0)] != static_cast<double>(2 * at(high ? 1 : edge)) + peer)
          return false;
      }
  return true;
}

}  // namespace

/// A rank of it. Rank 0 prints `sample time` and the median time of an exchange in us, and `sample
/// done 1` where everything has arrived.
int run_program(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  int rank = 0, size = 0;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  if (size != 2) {
    std::cerr << "two ranks exchange faces, not " << size << '\n';
    MPI_Abort(MPI_COMM_WORLD, 1);
  }
  const int peer = 1 - rank;
  std::array<MPI_Datatype, 6> inner, outer;
  for (int face = 0; face < 6; ++face) {
    inner[static_cast<std::size_t>(face)] = face_type(face, true);
    outer[static_cast<std::size_t>(face)] = face_type(face, false);
  }
  std::vector<double> cells(index({edge + 2, 0, 0}));
  for (std::size_t i = 0; i < cells.size(); ++i) cells[i] = static_cast<double>(2 * i) + rank;
  std::vector<double> times;
  for (int round = 0; round < rounds + 2; ++round) {
    MPI_Barrier(MPI_COMM_WORLD);
    double time = -MPI_Wtime();
    std::array<MPI_Request, 12> requests;
    for (int face = 0; face < 6; ++face)
      MPI_Irecv(cells.data(), 1, outer[static_cast<std::size_t>(face)], peer, face, MPI_COMM_WORLD,
                &requests[static_cast<std::size_t>(face)]);
    for (int face = 0; face < 6; ++face)
      MPI_Isend(cells.data(), 1, inner[static_cast<std::size_t>(face)], peer, face ^ 1,
                MPI_COMM_WORLD, &requests[static_cast<std::size_t>(6 + face)]);
    MPI_Waitall(12, requests.data(), MPI_STATUSES_IGNORE);
    time += MPI_Wtime();
    MPI_Allreduce(MPI_IN_PLACE, &time, 1, MPI_DOUBLE, MPI_MAX, MPI_COMM_WORLD);
    if (round >= 2) times.push_back(time * 1e6);  // connections are made before
  }
  int right = arrived(cells, peer) ? 1 : 0;
  MPI_Allreduce(MPI_IN_PLACE, &right, 1, MPI_INT, MPI_MIN, MPI_COMM_WORLD);
  std::nth_element(times.begin(), times.begin() + rounds / 2, times.end());
  if (rank == 0 && right != 0)
    std::cout << "sample time " << times[rounds / 2] << "\nsample done 1" << std::endl;
  for (MPI_Datatype& type : inner) MPI_Type_free(&type);
  for (MPI_Datatype& type : outer) MPI_Type_free(&type);
  MPI_Finalize();
  return right != 0 ? 0 : 1;
}
