// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors

/// @file
/// As memory/view: Views that are initialised, as they are unless something else is asked for, and
/// such that keep their pool.

#include <cstddef>
#include <memory>
#include <string>
#include <type_traits>

#include <Kokkos_Core.hpp>

#include <heddle/memory/pool.hpp>
#include <heddle/memory/shared.hpp>
#include <heddle/memory/space.hpp>
#include <heddle/memory/view.hpp>

#include "view_support.hpp"

namespace hm = heddle::memory;

namespace {

void run() {
  hm::Pool<hm::Pages> pool;
  using Space = hm::Space<hm::Pool<hm::Pages>>;
  const auto held = std::make_shared<hm::Pool<hm::Pages>>();
  const hm::Shared shared(held);
  const hm::Space shared_space(held);
  for (const std::size_t size : {0, 100, 10'000}) {
    bench::compare(
        "_zeroed_" + std::to_string(size),
        [&] { return Kokkos::View<double*, Kokkos::HostSpace>("velocity", size); },
        [&] { return pool.view<double*>("velocity", size); },
        [&] {
          return Kokkos::View<double*, Space>(Kokkos::view_alloc("velocity", Space(pool)), size);
        });
    bench::compare(
        "_shared_" + std::to_string(size),
        [&] {
          return Kokkos::View<double*, Kokkos::HostSpace>(
              Kokkos::view_alloc(Kokkos::WithoutInitializing, "velocity"), size);
        },
        [&] {
          return shared.view<double*>(Kokkos::view_alloc(Kokkos::WithoutInitializing, "velocity"),
                                      size);
        },
        [&] {
          return Kokkos::View<double*, std::remove_const_t<decltype(shared_space)>>(
              Kokkos::view_alloc(Kokkos::WithoutInitializing, "velocity", shared_space), size);
        });
  }
}

}  // namespace

int main(int argc, char** argv) {
  const Kokkos::ScopeGuard kokkos(argc, argv);
  return bench::status_of("memory/view_forms", run);
}
