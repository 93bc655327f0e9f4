// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors

// Everything of heddle::heddle in one unit, and the collectives, for scripts/gate.

#include <heddle/heddle.hpp>

#include "support.hpp"

void gate_collective(const heddle::Communicator& comm) {
  const Kokkos::View<double*, Kokkos::HostSpace> values("values", 8);
  heddle::all_reduce(gate::Exec{}, values, heddle::Sum{}, comm);
}
