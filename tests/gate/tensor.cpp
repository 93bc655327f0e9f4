// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors

// Tensors in device memory, for scripts/gate.

#include <heddle/systems/hap/run_program.hpp>
#include <heddle/tensor.hpp>

#include "support.hpp"

void gate_tensor(const heddle::DeviceMesh& mesh) {
  const heddle::Sharded<double**, gate::Exec> parts(mesh, {3, 4}, {heddle::Partial{}});
  const auto rows = heddle::redistribute(parts, {heddle::Shard{0, {}, 1}});
  heddle::Halo halo(rows);
  halo.exchange(gate::Exec{}, rows);
  heddle::StaleSum<double, gate::Exec>(mesh.all(), 8, {.age = 1})(gate::Exec{}, {"gate", 8});
  heddle::systems::ProgramRun<double, gate::Exec>(mesh.all(), {}, {}).run();
}
