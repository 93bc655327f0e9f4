// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors

/// @file
/// Allocates the temporary Views of a time step from a pool. They are plain Kokkos Views, and only
/// the first step allocates memory of the device. The allocations of a step are recorded, and
/// replayed with less memory. At the end, a block that is not released is reported by its label.

#include <cstddef>
#include <iostream>
#include <string>

#include <Kokkos_Core.hpp>

#include <heddle/memory.hpp>

#include "space.hpp"

namespace hd = heddle;
namespace memory = heddle::memory;
using Memory = examples::Space::memory_space;

namespace {

/// A step that needs two temporary matrices and returns a sum of its result.
template <class Pool>
double step(Pool& pool, int number) {
  const int n = 300 - number;  // each time a bit smaller
  const auto u = pool.template view<double**>("u", n, n);
  const auto squares = pool.template view<double**>(
      Kokkos::view_alloc("squares", Kokkos::WithoutInitializing), n, n);
  const Kokkos::MDRangePolicy<examples::Space, Kokkos::Rank<2>> all({0, 0}, {n, n});
  Kokkos::parallel_for(
      "fill", all, KOKKOS_LAMBDA(int i, int j) {
        if (i == j) u(i, j) = 1;  // all others are zero
        squares(i, j) = u(i, j) * u(i, j);
      });
  double sum = 0;
  Kokkos::parallel_reduce(
      "sum", all, KOKKOS_LAMBDA(int i, int j, double& s) { s += squares(i, j); }, sum);
  return sum;
}

}  // namespace

int main(int argc, char** argv) {
  const Kokkos::ScopeGuard kokkos(argc, argv);

  memory::Stats device{memory::FromSpace<Memory>()};  // what Kokkos is asked for, counted
  memory::Pool pool(device);
  memory::Trace trace;
  for (int number = 1; number <= 3; ++number) {
    const std::size_t before = device.usage().total_bytes;
    const memory::ViewRecorder recorder;
    const double sum = step(pool, number);
    trace = recorder.trace();
    std::cout << "step " << number << ": sum " << sum << ", asked for "
              << device.usage().total_bytes - before << " B\n";
  }

  // Replays the allocations of the last step on another resource, without the step.
  std::cout << trace.blocks() << " blocks, " << trace.peak() << " B at once\n";
  memory::Limit million(memory::Pages{}, 1'000'000);
  std::cout << "of a million bytes " << memory::replay(trace, million).refused << " is refused\n";

  // If a step has too little memory, it throws an error and loses nothing.
  memory::Limit little(pool, 1'000'000);
  try {
    const auto u = memory::make_view<double**>(little, "u", 300, 300);
    const auto v = memory::make_view<double**>(little, "v", 300, 300);
  } catch (const hd::out_of_memory& error) {
    std::cout << error.complaint().where << ": " << error.complaint().what << '\n';
  }
  std::cout << little.used() << " B of it are still out\n";

  // A block that is not released is reported by its label.
  memory::Tracking tracking(memory::Pages{}, [](const hd::contract_error& fault) {
    const std::string what = fault.complaint().what;  // "block ... at <address> is ..."
    std::cout << what.substr(0, what.find(" at ")) << " has not come back\n";
  });
  void* forgotten = nullptr;
  {
    const memory::Label label("moments");
    forgotten = tracking.allocate(1000, 64);
  }
  tracking.check_returned();
  tracking.deallocate(forgotten, 1000, 64);
}
