// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// compare_run(): runs a ShardedProgram over ranks and compares its outputs with given ones.

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <vector>

#include <catch2/catch_test_macros.hpp>

#include <heddle/systems/hap/program.hpp>
#include <heddle/systems/hap/run_program.hpp>
#include <heddle/systems/hap/sharded_program.hpp>
#include <heddle/systems/rhino/rhino_plan.hpp>
#include <heddle/tensor.hpp>

#include "space.hpp"
#include "support/program_reference.hpp"

namespace heddle::test {

/// Runs `sharded` with the values `given` of inputs and parameters. Requires that the outputs equal
/// `expected` with an error of at most 1e-12 of 1 plus the value.
inline void compare_run(const Communicator& comm, const systems::TensorProgram& program,
                        const systems::ShardedProgram& sharded, const ProgramValues& given,
                        const ProgramValues& expected) {
  systems::ProgramRun<double, examples::Space> run(comm, program, sharded);
  for (const auto& [name, values] : given) run.set(name, values);
  run.run();
  for (const systems::ProgramTensor& tensor : program.tensors) {
    if (tensor.role != systems::TensorRole::output) continue;
    CAPTURE(tensor.name);
    const std::vector<double> found = run.whole(tensor.name);
    const std::vector<double>& wanted = expected.at(tensor.name);
    REQUIRE(found.size() == wanted.size());
    double worst = 0;
    for (std::size_t i = 0; i < found.size(); ++i)
      worst = std::max(worst, std::abs(found[i] - wanted[i]) / (1 + std::abs(wanted[i])));
    REQUIRE(worst < 1e-12);
  }
}

}  // namespace heddle::test
