// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// For the units that scripts/gate compiles for devices: the space, and Views of it. Nothing here
/// runs; what counts is that every kernel is compiled, for a device.

#include <cstddef>
#include <type_traits>

#include <Kokkos_Core.hpp>

#include <heddle/kernel/view.hpp>

namespace gate {

using Exec = Kokkos::DefaultExecutionSpace;
static_assert(!Kokkos::SpaceAccessibility<Kokkos::HostSpace, Exec::memory_space>::accessible,
              "gate: the default execution space is not a device with memory of its own");

template <class T>
[[nodiscard]] Kokkos::View<T**, Kokkos::LayoutRight, Exec::memory_space> matrix() {
  return Kokkos::View<T**, Kokkos::LayoutRight, Exec::memory_space>("gate", 8, 8);
}
template <class T>
[[nodiscard]] Kokkos::View<T*, Kokkos::LayoutRight, Exec::memory_space> vector() {
  return Kokkos::View<T*, Kokkos::LayoutRight, Exec::memory_space>("gate", 8);
}

}  // namespace gate
