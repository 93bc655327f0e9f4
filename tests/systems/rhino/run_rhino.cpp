// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
// ranks: 1 2 3 4
// timeout: 120

// The instructions of Rhino's plans on ranks: random programs, an MLP and an embedding compute what
// one core does.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <random>

#include <catch2/catch_test_macros.hpp>
#include <mpi.h>

#include <heddle/machine/machine.hpp>
#include <heddle/systems/hap/program.hpp>
#include <heddle/systems/hap/sharded_program.hpp>
#include <heddle/systems/rhino/rhino.hpp>
#include <heddle/systems/rhino/rhino_plan.hpp>
#include <heddle/tensor.hpp>

#include "support/cases.hpp"
#include "support/program_reference.hpp"
#include "support/program_runs.hpp"
#include "support/random_program.hpp"
#include "support/tensor_programs.hpp"

namespace test_run_rhino {

namespace hd = heddle;
namespace hp = heddle::systems;

namespace {

/// Runs a plan for a flat machine of all ranks, and compares its outputs with those of one core.
/// Returns the number of collectives.
std::size_t run_plan(const hp::TensorProgram& program, double rate, std::mt19937_64& random,
                     const hd::Communicator& comm) {
  const hd::test::ProgramValues given = hd::test::random_values(program, random);
  hd::test::ProgramValues expected = given;
  hd::test::compute_reference(program, expected);
  const hd::Machine machine = hd::Machine::uniform(comm.size(), {}, {1e-6, 1e9});
  const hp::RhinoPlan plan = hp::rhino(program, machine, {.flops = rate});
  const hp::ShardedProgram sharded = sharded_program(program, plan);
  check(program, sharded);
  hd::test::compare_run(comm, program, sharded, given, expected);
  const auto sends = [](const hp::ShardInstruction& instruction) {
    return instruction.kind > hp::ShardInstructionKind::slice;
  };
  return static_cast<std::size_t>(std::ranges::count_if(sharded.instructions, sends));
}

}  // namespace

TEST_CASE("random programs compute in Rhino's plans what one core does", "[tensor][rhino]") {
  const hd::Communicator comm(MPI_COMM_WORLD);
  const std::uint64_t seeds = hd::test::cases(25, 2000);
  std::size_t collectives = 0;
  for (std::uint64_t seed = 0; seed < seeds; ++seed) {
    CAPTURE(seed);
    std::mt19937_64 random(seed);
    const hp::TensorProgram program = hd::test::random_program(random, 8);
    collectives += run_plan(program, 1e6, random, comm);
  }
  CHECK((comm.size() == 1 || collectives > 5));
}

TEST_CASE("an MLP and an embedding train in Rhino's plans as on one core", "[tensor][rhino]") {
  const hd::Communicator comm(MPI_COMM_WORLD);
  std::mt19937_64 random(29);
  std::size_t collectives = run_plan(hd::test::trained_mlp(5, 12, 24), 1e5, random, comm);
  collectives += run_plan(hd::test::trained_mlp(48, 6, 6), 1e5, random, comm);
  collectives += run_plan(hd::test::tied_embedding(7, 12, 6), 1e5, random, comm);
  CHECK((comm.size() == 1 || collectives >= 5));
}

}  // namespace test_run_rhino
