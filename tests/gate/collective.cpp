// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors

// Everything of heddle::heddle in one unit, and sums over Views in device memory, for scripts/gate.

#include <heddle/heddle.hpp>

#include "support.hpp"

void gate_collective(const heddle::Communicator& comm) {
  const auto values = gate::vector<double>();
  heddle::all_reduce(gate::Exec{}, values, heddle::Sum{}, comm);
  heddle::ScheduledSum sum(values, comm);
  sum();
  heddle::ScheduledSum whole(gate::vector<std::int64_t>(), comm);
  whole();
}
