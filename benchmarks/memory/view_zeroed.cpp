// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors

/// @file
/// As memory/view, but the Views are initialised, as they are unless something else is asked for.

#include <cstddef>
#include <string>

#include <Kokkos_Core.hpp>

#include <heddle/memory/pool.hpp>
#include <heddle/memory/space.hpp>
#include <heddle/memory/view.hpp>

#include "view_support.hpp"

namespace hm = heddle::memory;

namespace {

void run() {
  hm::Pool<hm::Pages> pool;
  using Space = hm::Space<hm::Pool<hm::Pages>>;
  for (const std::size_t size : {0, 100, 10'000})
    bench::compare(
        "_zeroed_" + std::to_string(size),
        [&] { return Kokkos::View<double*, Kokkos::HostSpace>("velocity", size); },
        [&] { return pool.view<double*>("velocity", size); },
        [&] {
          return Kokkos::View<double*, Space>(Kokkos::view_alloc("velocity", Space(pool)), size);
        });
}

}  // namespace

int main(int argc, char** argv) {
  const Kokkos::ScopeGuard kokkos(argc, argv);
  return bench::status_of("memory/view_zeroed", run);
}
