// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors

// Ranks as a mesh of two axes, and gradients summed along one of them: by the MPI library, and by a
// Schedule that can be printed. Both are compared with the serial sum.
//
//   mpiexec -n 4 example_03_mesh_and_gradient_sum     (or any other even number of ranks)

#include <cstdint>
#include <iostream>
#include <span>

#include <heddle/heddle.hpp>

#include "results.hpp"
#include "space.hpp"

namespace hd = heddle;
using examples::Space;
using Gradients = Kokkos::View<double*, Space>;

/// Whole numbers, whose sum is exact in any order.
KOKKOS_FUNCTION double gradient(int rank, int i) { return 10 * (rank + 1) + i; }

struct Fill {
  Gradients gradients;
  int rank;
  KOKKOS_FUNCTION void operator()(int i) const { gradients(i) = gradient(rank, i); }
};

int main(int argc, char** argv) {
  hd::Environment env(argc, argv);
  int ranks = 0;
  MPI_Comm_size(MPI_COMM_WORLD, &ranks);
  hd::DeviceMesh mesh(MPI_COMM_WORLD, {{"pipe", ranks / 2}, {"data", 2}});

  constexpr int count = 7;  // need not be a multiple of the ranks
  const int me = static_cast<int>(+mesh.rank());
  const Gradients by_library("example::by_library", count);
  const Gradients by_schedule("example::by_schedule", count);
  for (const Gradients& gradients : {by_library, by_schedule})
    Kokkos::parallel_for("example::fill", Kokkos::RangePolicy<Space>(0, count),
                         Fill{gradients, me});

  hd::all_reduce(Space{}, by_library, hd::Sum{}, mesh["data"]);  // waits for Space{} first
  auto sum = hd::all_reduce<hd::Prepared>(Space{}, by_schedule, hd::Sum{}, mesh["data"],
                                          {.algorithm = hd::schedule::Algorithm::ring});
  sum();  // again and again on the same memory, in a training loop

  const auto library_sum = hd::host_mirror(by_library);
  const auto schedule_sum = hd::host_mirror(by_schedule);
  Kokkos::deep_copy(library_sum, by_library);
  Kokkos::deep_copy(schedule_sum, by_schedule);
  // The two ranks of a line along "data" are neighbours.
  const Kokkos::View<std::int64_t, Kokkos::HostSpace> wrong("example::wrong");
  const int first = me - mesh.coordinate("data");
  for (int i = 0; i < count; ++i) {
    const double serial = gradient(first, i) + gradient(first + 1, i);
    wrong() += (library_sum(i) != serial) + (schedule_sum(i) != serial);
  }
  hd::all_reduce(Kokkos::DefaultHostExecutionSpace{}, wrong, hd::Sum{}, mesh.all());
  if (me == 0) {
    examples::write_results(hd::text("gradient_sum.n", ranks),
                            std::span(schedule_sum.data(), count), 0);
    std::cout << mesh << '\n'
              << sum.schedule().name() << ":\n"
              << hd::to_text(sum.schedule()) << "sum of element 0 on this line: " << schedule_sum(0)
              << "\nelements that differ from the serial sum, on all ranks: " << wrong() << '\n';
  }
  return wrong() == 0 ? 0 : 1;
}
