// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors

// Views in device memory out of a pool, for scripts/gate.

#include <heddle/memory.hpp>

#include "support.hpp"

void gate_memory() {
  using Memory = gate::Exec::memory_space;
  heddle::memory::Pool pool(heddle::memory::FromSpace<Memory>{});
  const Kokkos::View<double**, Memory> u = pool.view<double**>("u", 3, 4);
  struct Particle {
    float mass, charge;
  };
  const Kokkos::View<Particle*, Memory> particles = pool.view<Particle*>("particles", 3);
  const Kokkos::View<double*, Memory> plain =
      pool.view<double*>(Kokkos::view_alloc("plain", Kokkos::WithoutInitializing), 5);
  heddle::memory::Space space(pool);
  const Kokkos::View<float*, decltype(space)> by_space(Kokkos::view_alloc("by_space", space), 7);
  const Kokkos::View<float*, Memory> converted = by_space;
  heddle::memory::Ordered<gate::Exec, heddle::memory::Ref<decltype(pool)>> ordered(pool);
  const gate::Exec exec;
  const auto temporary = heddle::memory::make_view<int*>(exec, ordered, "temporary", 9);
  Kokkos::deep_copy(exec, temporary, 1);
}
