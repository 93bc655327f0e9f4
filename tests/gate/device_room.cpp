// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors

// The room device, for scripts/gate: mirrors of memory that the host cannot reach.

#include <heddle/device.hpp>

#include "fixtures/unlaunched.hpp"
#include "support.hpp"

void gate_device() {
  const auto values = gate::vector<double>();
  const auto mirror = heddle::host_mirror(values);
  static_assert(std::is_same_v<decltype(mirror)::memory_space, Kokkos::HostSpace>);
  Kokkos::deep_copy(gate::Exec{}, values, mirror);
}
