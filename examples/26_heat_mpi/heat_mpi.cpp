// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
// space: its own

// Heat in a plate, ported from MPI and Kokkos (by_hand/by_hand.cpp) to Heddle. Both print the same.
//
//   mpiexec -n 4 example_26_heat_mpi [ROWS COLUMNS STEPS]

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <iostream>
#include <utility>
#include <vector>

#include <Kokkos_Core.hpp>

#include <heddle/collective/all_reduce.hpp>
#include <heddle/collective/operations.hpp>
#include <heddle/comm/device_mesh.hpp>
#include <heddle/comm/environment.hpp>
#include <heddle/tensor/halo.hpp>
#include <heddle/tensor/redistribute.hpp>
#include <heddle/tensor/sharded.hpp>

namespace hd = heddle;
using Exec = Kokkos::DefaultHostExecutionSpace;
using Plate = hd::Sharded<double**, Exec>;
using View = Plate::View;

// The plate is cold, but for a hot square in one corner.
double start(std::int64_t row, std::int64_t column) { return row < 40 && column < 30 ? 100 : 0; }

// One step of the elements in rows a to b - 1 and columns c to d - 1 of a rank's part.
void flow(const View& now, const View& next, int a, int b, int c, int d) {
  if (a >= b || c >= d) return;
  Kokkos::parallel_for(
      "flow", Kokkos::MDRangePolicy<Exec, Kokkos::Rank<2>>({a, c}, {b, d}),
      KOKKOS_LAMBDA(int i, int j) {
        next(i, j) = now(i, j) + 0.2 * (now(i - 1, j) + now(i + 1, j) + now(i, j - 1) +
                                        now(i, j + 1) - 4 * now(i, j));
      });
}

int main(int argc, char** argv) {
  hd::Environment env(argc, argv);  // MPI and Kokkos
  const std::int64_t rows = argc > 1 ? std::atoi(argv[1]) : 101;
  const std::int64_t columns = argc > 2 ? std::atoi(argv[2]) : 67;
  const int steps = argc > 3 ? std::atoi(argv[3]) : 200;
  int ranks = 0;
  MPI_Comm_size(MPI_COMM_WORLD, &ranks);
  const hd::DeviceMesh mesh(MPI_COMM_WORLD,
                            hd::MeshShape::least_surface(ranks, {"y", "x"}, {rows, columns}));
  const std::vector<hd::Placement> boxes = {hd::Shard{0, {}, 1}, hd::Shard{1, {}, 1}};
  Plate now(mesh, {rows, columns}, boxes), next(mesh, {rows, columns}, boxes);
  const auto mine = now.owned();
  const int h = int(mine.extent(0)), w = int(mine.extent(1));
  for (int i = 0; i < h; ++i)
    for (int j = 0; j < w; ++j) mine(i, j) = start(now.indices(0)[i], now.indices(1)[j]);

  hd::Halo halo(now, {.corners = false});
  MPI_Barrier(MPI_COMM_WORLD);
  const double began = MPI_Wtime();
  for (int step = 0; step < steps; ++step) {
    halo.start(Exec{}, now);
    const View from = now.view(), to = next.view();
    flow(from, to, 2, h, 2, w);  // the inside, which needs no neighbour
    halo.wait(Exec{});
    flow(from, to, 1, std::min(2, h + 1), 1, w + 1);  // the border
    flow(from, to, std::max(2, h), h + 1, 1, w + 1);
    flow(from, to, 2, h, 1, std::min(2, w + 1));
    flow(from, to, 2, h, std::max(2, w), w + 1);
    std::swap(now, next);
  }
  Kokkos::fence("steps");
  const double seconds = MPI_Wtime() - began;

  double most = 0;  // of the rank's own elements
  for (int i = 1; i <= h; ++i)
    for (int j = 1; j <= w; ++j) most = std::max(most, now.view()(i, j));
  const double hottest = hd::all_reduce(most, hd::Max{}, mesh.all());
  const Plate whole = hd::redistribute(now, {hd::Replicate{}, hd::Replicate{}});
  if (+mesh.rank() == 0) {
    std::uint64_t bits = 0;
    for (std::size_t i = 0; i < whole.view().size(); ++i) {
      std::uint64_t word = 0;
      std::memcpy(&word, whole.view().data() + i, sizeof word);
      bits = bits * 31 + word;
    }
    std::cout << rows << " x " << columns << " after " << steps << " steps: hottest " << hottest
              << ", bits " << bits << '\n';
    std::cerr << "a step takes " << 1e6 * seconds / std::max(steps, 1) << " us\n";
  }
}
