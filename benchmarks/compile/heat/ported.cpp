// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors

/// @file
/// The heat equation by Heddle.

#include <cstdint>
#include <utility>

#include <Kokkos_Core.hpp>
#include <mpi.h>

#include <heddle/collective/all_reduce.hpp>
#include <heddle/comm/communicator.hpp>
#include <heddle/layout/layout.hpp>
#include <heddle/tensor/halo.hpp>
#include <heddle/tensor/sharded.hpp>

#include "heat.hpp"

namespace hd = heddle;

namespace heat {

namespace {

using Exec = Kokkos::DefaultHostExecutionSpace;
using Grid = hd::Sharded<double**, Exec>;
using Range = Kokkos::MDRangePolicy<Exec, Kokkos::Rank<2>>;

/// The grid, its rows cut over the ranks, each part inside of a halo of one row at either side.
[[nodiscard]] Grid make(const hd::Communicator& comm, std::int64_t size) {
  return {comm, hd::Layout(hd::MeshShape{{"rows", comm.size()}}, {size, size},
                           {hd::Shard{0, {}, 1}})};
}

}  // namespace

Result ported(MPI_Comm comm, std::int64_t size, int steps) {
  const hd::Communicator ranks(comm);
  Grid now = make(ranks, size), next = make(ranks, size);
  const std::int64_t first = now.indices(0)[0];
  const auto start = now.parts();
  const auto count = static_cast<std::int64_t>(start.extent(0)) - 2;
  Kokkos::parallel_for(
      "start", Range({1, 0}, {count + 1, size}), KOKKOS_LAMBDA(std::int64_t i, std::int64_t j) {
        start(i, j) = static_cast<double>((first + i - 1) * 7 % 11 + j % 13);
      });
  Kokkos::deep_copy(next.parts(), start);
  hd::Halo<double**, Exec> halo(now);
  const std::int64_t begin = first == 0 ? 2 : 1;
  const std::int64_t end = first + count == size ? count : count + 1;
  Kokkos::View<double[2], Kokkos::HostSpace> sums("sums");
  for (int step = 0; step < steps; ++step) {
    halo.exchange(Exec{}, now);
    const auto from = now.parts(), to = next.parts();
    Kokkos::parallel_reduce(
        "step", Range({begin, 1}, {end, size - 1}),
        KOKKOS_LAMBDA(std::int64_t i, std::int64_t j, double& change) {
          const double flow = from(i - 1, j) + from(i + 1, j) + from(i, j - 1) + from(i, j + 1);
          to(i, j) = from(i, j) + 0.125 * (flow - 4 * from(i, j));
          change += (to(i, j) - from(i, j)) * (to(i, j) - from(i, j));
        },
        sums(1));
    std::swap(now, next);
  }
  const auto last = now.parts();
  Kokkos::parallel_reduce(
      "total", Range({1, 0}, {count + 1, size}),
      KOKKOS_LAMBDA(std::int64_t i, std::int64_t j, double& sum) { sum += last(i, j); }, sums(0));
  hd::all_reduce(Exec{}, sums, hd::Sum{}, ranks);
  return {sums(0), sums(1)};
}

}  // namespace heat
