// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors

// Heat leaves a square plate whose edge is kept at zero degrees. Three patterns compute everything:
// a map heats the middle, a stencil makes the steps, and reductions compute statistics of the
// plate. The same source runs on every execution space. Host cores read the plate directly; GPUs
// and Sunway-style cores copy tiles of it to their scratch.

#include <cstddef>
#include <iostream>
#include <span>
#include <utility>

#include <Kokkos_Core.hpp>

#include <heddle/device.hpp>
#include <heddle/kernel.hpp>

#include "results.hpp"
#include "space.hpp"

namespace hd = heddle;
namespace hk = heddle::kernel;
using Exec = examples::Space;  // Kokkos::DefaultExecutionSpace, or what the build names
using Plate = Kokkos::View<double**, Kokkos::LayoutRight, Exec::memory_space>;

namespace {

struct Hot {
  KOKKOS_FUNCTION double operator()() const { return 100; }
};

/// Each step moves a fraction of every temperature difference.
struct Flow {
  double rate;
  template <class Neighbourhood>
  KOKKOS_FUNCTION double operator()(const Neighbourhood& t) const {
    return t(0, 0) + rate * (t(-1, 0) + t(1, 0) + t(0, -1) + t(0, 1) - 4 * t(0, 0));
  }
};

struct Same {
  KOKKOS_FUNCTION double operator()(double degrees) const { return degrees; }
};

/// Prints the hottest point, the mean, and every eighth row in every fourth column.
void show(int step, const Exec& exec, const Plate& plate) {
  double hottest = 0, sum = 0;
  hk::reduce(exec, Kokkos::Max<double>(hottest), Same{}, plate);
  hk::reduce(exec, Kokkos::Sum<double>(sum), Same{}, plate);
  std::cout << "step " << step << ": hottest " << hottest << ", mean "
            << sum / static_cast<double>(plate.size()) << '\n';
  const auto host = hd::host_mirror(plate);
  Kokkos::deep_copy(host, plate);
  for (std::size_t row = 4; row < plate.extent(0); row += 8) {
    std::cout << '|';
    for (std::size_t column = 2; column < plate.extent(1); column += 4)
      std::cout << " .:-=+*#%@"[static_cast<std::size_t>(host(row, column) / 10.01)];
    std::cout << "|\n";
  }
}

}  // namespace

int main(int argc, char** argv) {
  const Kokkos::ScopeGuard kokkos(argc, argv);
  const Exec exec;
  constexpr std::size_t length = 96;
  Plate now("plate", length, length), next("next plate", length, length);

  const std::pair<std::size_t, std::size_t> middle(length / 3, 2 * length / 3);
  hk::map(exec, Hot{}, Kokkos::subview(now, middle, middle));
  for (int step = 0; step <= 800; ++step) {
    if (step % 400 == 0) show(step, exec, now);
    hk::stencil(exec, 1, Flow{0.2}, next, now, {.boundary = hk::Boundary::constant});
    std::swap(now, next);
  }

  // A step rounds by at most 5e-14 degrees at a temperature of 100, and averages the values before
  // it. Two runs therefore differ by at most 801 times 1e-13 degrees, 2.1e-12 of the hottest
  // point's 39.
  const auto host = hd::host_mirror(now);
  Kokkos::deep_copy(host, now);
  examples::write_results("plate", std::span(host.data(), host.size()), 2.1e-12);
}
