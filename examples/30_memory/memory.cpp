// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors

/// @file
/// The temporary Views of a time step out of a pool: plain Kokkos Views, for which the device is
/// asked for memory in the first step only. What a step took is recorded, and tried out with less
/// memory; and what is left behind has a name.

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

/// A step that needs two matrices of its own, and sums what it has computed.
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

  // What the last step took, from another resource, without the step.
  std::cout << trace.blocks() << " blocks, " << trace.peak() << " B at once\n";
  memory::Limit million(memory::Pages{}, 1'000'000);
  std::cout << "of a million bytes " << memory::replay(trace, million).refused << " is refused\n";

  // A step that has not so much memory says so, and loses nothing.
  memory::Limit little(pool, 1'000'000);
  try {
    const auto u = memory::make_view<double**>(little, "u", 300, 300);
    const auto v = memory::make_view<double**>(little, "v", 300, 300);
  } catch (const hd::out_of_memory& error) {
    std::cout << error.complaint().where << ": " << error.complaint().what << '\n';
  }
  std::cout << little.used() << " B of it are still out\n";

  // What does not come back is named by its label.
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
