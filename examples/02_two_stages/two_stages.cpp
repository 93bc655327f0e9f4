// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors

// A pipeline of two plain functions in one process. One thread sieves blocks of numbers while the
// other counts the primes of the block before. Needs neither MPI nor Kokkos.

#include <cstdint>
#include <iostream>

#include <heddle/heddle_core.hpp>

#include "primes.hpp"

namespace hd = heddle;

int main() {
  constexpr int blocks = 5;            // per step
  constexpr hd::Bytes block = 50'000;  // a byte per number
  const hd::Schedule schedule =
      hd::schedule::stream({.ranks = 2, .microbatches = blocks, .sizes = {.activation = block}});
  std::cout << hd::to_grid(schedule);

  hd::run_threads(schedule.ranks(), [&](hd::ThreadTransport& transport) {
    examples::Primes model(blocks);
    hd::Runner run(model, schedule, transport, {.execute = {.record = true}});
    for (std::uint64_t step = 0; step < 4; ++step) {
      const examples::PrimeCount count = run.step(step);
      if (transport.rank() == 0) std::cout << count << '\n';
    }
    // The measured time of the last step, and the time that simulate() predicts from the recorded
    // costs.
    const hd::Timeline measured = run.timeline();
    const hd::Timeline predicted = hd::simulate(run.schedule(), run.costs());
    if (transport.rank() == 0)
      std::cout << "makespan measured " << measured.makespan() * 1e3 << " ms, predicted "
                << predicted.makespan() * 1e3 << " ms\n"
                << hd::to_grid(measured, 60);
  });
}
