// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors

/// @file
/// The performance portability of Heddle's patterns on the host back end that Kokkos was built for;
/// measure.hpp says how it is defined. scripts/bench runs this on OpenMP and on Serial, and joins
/// the two metrics to one.

#include <cstddef>
#include <iostream>
#include <string>
#include <vector>

#include <Kokkos_Core.hpp>

#include <heddle/device/athread.hpp>

#include "measure.hpp"

namespace {

using namespace portability;

constexpr int rounds = 31;

/// `back_end` is part of the names that are printed.
Measured print(const Application& application, const std::string& back_end) {
  const Measured measured = measure(application, rounds);
  for (std::size_t way = 1; way < application.ways.size(); ++way)
    bench::print_ratio("portability/" + application.name + '_' + back_end,
                       application.ways[way].name, measured.ratios[way - 1]);
  std::cout << "  ours " << 1e3 * measured.ours << " ms, best native " << 1e3 * measured.native
            << " ms\n";
  return measured;
}

void run() {
  const Sizes sizes = Sizes::large();
  std::cout << "back end " << native::back_end << ", "
            << Kokkos::DefaultHostExecutionSpace().concurrency() << " threads; arrays of "
            << sizes.n << ", a grid of " << sizes.grid.n0 << " x " << sizes.grid.n1 << " x "
            << sizes.grid.n2 << ", matrices of order " << sizes.order << "; " << rounds
            << " interleaved rounds\n";
  std::vector<bench::Summary> fractions;
  for (const Application& application : applications<Kokkos::DefaultHostExecutionSpace>(sizes)) {
    const Measured measured = print(application, native::back_end);
    fractions.push_back(fraction(measured));
    bench::print_value("portability/fraction", application.name + '_' + native::back_end,
                       fractions.back(), "of_1");
  }
  bench::print_value("portability/metric", native::back_end, harmonic_mean(fractions), "of_1");

  // In no metric: the core group is emulated, and no native code for one runs here.
  for (const Application& application : applications<heddle::Athread>(Sizes::small())) {
    require_same_work(application);
    std::vector<double> milliseconds;
    for (int round = 0; round < rounds; ++round)
      milliseconds.push_back(1e3 * bench::seconds_of(application.ways.front().run));
    bench::print_value("portability/athread_emulated", application.name,
                       bench::summarise(milliseconds), "ms");
  }
}

}  // namespace

int main(int argc, char** argv) {
  const Kokkos::ScopeGuard kokkos(argc, argv);
  return bench::status_of("portability", run);
}
