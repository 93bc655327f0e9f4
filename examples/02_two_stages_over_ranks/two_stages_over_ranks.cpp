// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
// space: its own

// The pipeline of 02_two_stages over two MPI ranks: the same functions and the same schedule,
// another place to run them.
//
//   mpiexec -n 2 example_02_two_stages_over_ranks

#include <cstdint>
#include <iostream>

#include <heddle/heddle.hpp>

#include "primes.hpp"

namespace hd = heddle;

int main(int argc, char** argv) {
  hd::Environment env(argc, argv);  // MPI and Kokkos
  hd::DeviceMesh mesh(MPI_COMM_WORLD, {{"pipe", 2}});

  constexpr int blocks = 5;            // per step
  constexpr hd::Bytes block = 50'000;  // a byte per number
  const hd::Schedule schedule =
      hd::schedule::stream({.ranks = 2, .microbatches = blocks, .sizes = {.activation = block}});
  const bool speaks = mesh.rank() == 0;
  if (speaks) std::cout << hd::to_text(schedule);

  examples::Primes model(blocks);
  hd::Runner run(model, schedule, mesh, {.execute = {.record = true}});
  for (std::uint64_t step = 0; step < 4; ++step) {
    const examples::PrimeCount count = run.step(step);
    if (speaks) std::cout << count << '\n';
  }

  // Now the links have costs too.
  const hd::Timeline measured = run.timeline();
  const hd::Timeline predicted =
      hd::simulate(run.schedule(), run.costs(), hd::measure_machine(mesh));
  if (speaks)
    std::cout << "makespan measured " << measured.makespan() * 1e3 << " ms, predicted "
              << predicted.makespan() * 1e3 << " ms\n";
}
