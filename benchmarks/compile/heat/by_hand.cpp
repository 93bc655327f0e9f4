// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors

/// @file
/// The heat equation by Kokkos and MPI.

#include <cstdint>
#include <utility>

#include <Kokkos_Core.hpp>
#include <mpi.h>

#include "heat.hpp"

namespace heat {

namespace {

using Exec = Kokkos::DefaultHostExecutionSpace;
using Grid = Kokkos::View<double**, Kokkos::LayoutRight, Kokkos::HostSpace>;
using Range = Kokkos::MDRangePolicy<Exec, Kokkos::Rank<2>>;

/// The grid's rows of this rank, inside of a halo of one row at either side.
struct Rows {
  std::int64_t first, count;
  int rank, ranks;
};

[[nodiscard]] Rows rows_of(MPI_Comm comm, std::int64_t size) {
  Rows rows{};
  MPI_Comm_rank(comm, &rows.rank);
  MPI_Comm_size(comm, &rows.ranks);
  const std::int64_t part = size / rows.ranks, more = size % rows.ranks;
  rows.first = rows.rank * part + (rows.rank < more ? rows.rank : more);
  rows.count = part + (rows.rank < more ? 1 : 0);
  return rows;
}

void exchange_halo(MPI_Comm comm, const Rows& rows, const Grid& grid) {
  const int above = rows.rank > 0 ? rows.rank - 1 : MPI_PROC_NULL;
  const int below = rows.rank + 1 < rows.ranks ? rows.rank + 1 : MPI_PROC_NULL;
  const int width = static_cast<int>(grid.extent(1));
  MPI_Sendrecv(&grid(1, 0), width, MPI_DOUBLE, above, 0, &grid(rows.count + 1, 0), width,
               MPI_DOUBLE, below, 0, comm, MPI_STATUS_IGNORE);
  MPI_Sendrecv(&grid(rows.count, 0), width, MPI_DOUBLE, below, 1, &grid(0, 0), width, MPI_DOUBLE,
               above, 1, comm, MPI_STATUS_IGNORE);
}

}  // namespace

Result by_hand(MPI_Comm comm, std::int64_t size, int steps) {
  const Rows rows = rows_of(comm, size);
  Grid now("now", rows.count + 2, size), next("next", rows.count + 2, size);
  const Grid start = now;
  Kokkos::parallel_for(
      "start", Range({1, 0}, {rows.count + 1, size}),
      KOKKOS_LAMBDA(std::int64_t i, std::int64_t j) {
        start(i, j) = static_cast<double>((rows.first + i - 1) * 7 % 11 + j % 13);
      });
  Kokkos::deep_copy(next, now);
  const std::int64_t begin = rows.first == 0 ? 2 : 1;
  const std::int64_t end = rows.first + rows.count == size ? rows.count : rows.count + 1;
  double sums[2] = {0, 0};
  for (int step = 0; step < steps; ++step) {
    exchange_halo(comm, rows, now);
    const Grid from = now, to = next;
    Kokkos::parallel_reduce(
        "step", Range({begin, 1}, {end, size - 1}),
        KOKKOS_LAMBDA(std::int64_t i, std::int64_t j, double& change) {
          const double flow = from(i - 1, j) + from(i + 1, j) + from(i, j - 1) + from(i, j + 1);
          to(i, j) = from(i, j) + 0.125 * (flow - 4 * from(i, j));
          change += (to(i, j) - from(i, j)) * (to(i, j) - from(i, j));
        },
        sums[1]);
    std::swap(now, next);
  }
  const Grid last = now;
  Kokkos::parallel_reduce(
      "total", Range({1, 0}, {rows.count + 1, size}),
      KOKKOS_LAMBDA(std::int64_t i, std::int64_t j, double& sum) { sum += last(i, j); }, sums[0]);
  MPI_Allreduce(MPI_IN_PLACE, sums, 2, MPI_DOUBLE, MPI_SUM, comm);
  return {sums[0], sums[1]};
}

}  // namespace heat
