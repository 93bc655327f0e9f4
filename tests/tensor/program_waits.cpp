// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
// ranks: 4
// timeout: 120
// alone: yes

// HAP's program on ranks of speeds 2, 2, 1 and 1 that wait as long as their parts and collectives
// are priced: the gain over equal shares, and the step against its prediction.

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <iostream>
#include <random>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include <catch2/catch_test_macros.hpp>
#include <mpi.h>

#include <heddle/machine/machine.hpp>
#include <heddle/plan/planner/hap.hpp>
#include <heddle/plan/program.hpp>
#include <heddle/plan/sharded_program.hpp>
#include <heddle/tensor.hpp>

#include "space.hpp"
#include "support/program_reference.hpp"
#include "support/rounds.hpp"

namespace test_program_waits {

namespace hd = heddle;
namespace hp = heddle::plan;
using examples::Space;

namespace {

constexpr double flops = 4e5;

hp::TensorProgram training() {
  using Role = hp::TensorRole;
  using Kind = hp::OperationKind;
  return {.name = "training",
          .dimensions = {{"b", 96}, {"i", 16}, {"o", 16}},
          .tensors = {{"x", {"b", "i"}, Role::input},
                      {"target", {"b", "o"}, Role::input},
                      {"w", {"i", "o"}, Role::parameter},
                      {"y", {"b", "o"}},
                      {"dy", {"b", "o"}},
                      {"dw", {"i", "o"}},
                      {"new_w", {"i", "o"}, Role::output, hd::Scalar::f64, "w"}},
          .operations = {{Kind::matmul, {"x", "w"}, "y"},
                         {Kind::elementwise, {"y", "target"}, "dy", "subtract"},
                         {Kind::matmul, {"x", "dy"}, "dw"},
                         {Kind::elementwise, {"w", "dw"}, "new_w", "step", 0.01}}};
}

/// Returns the seconds of several steps, of the slowest rank.
hd::test::Spread measured(const hd::Communicator& comm, const hp::TensorProgram& program,
                          const hp::ShardedProgram& sharded, const hd::Machine& machine) {
  using Clock = std::chrono::steady_clock;
  std::mt19937_64 random(1);
  hd::ProgramRun<double, Space> run(comm, program, sharded);
  for (const auto& [name, values] : hd::test::random_values(program, random)) run.set(name, values);
  const auto rank = static_cast<std::size_t>(+comm.rank());
  // Collectives are priced one by one, as parts of a program with no other instruction.
  const auto seconds = [&](const hp::ShardInstruction& now) {
    if (now.kind == hp::ShardInstructionKind::compute) {
      const std::string& dim = now.rule.divided;
      const double share = dim.empty()
                               ? 1.0
                               : static_cast<double>(sharded.blocks[program.dimension(dim)][rank]) /
                                     static_cast<double>(program.size_of(dim));
      return program.flops(program.operations[now.operation]) * share /
             (flops * machine.device(comm.rank()).speed);
    }
    const double bytes = program.bytes(program.tensors[program.tensor(now.tensor)]);
    const double part = bytes / 4 / machine.link(0, 1).bandwidth;
    if (now.kind == hp::ShardInstructionKind::all_reduce) return 6 * part;
    if (now.kind == hp::ShardInstructionKind::place || now.kind == hp::ShardInstructionKind::slice)
      return 0.0;
    const auto& blocks = sharded.blocks[program.dimension(
        now.kind == hp::ShardInstructionKind::all_gather ? now.from.dim : now.to.dim)];
    const double largest = static_cast<double>(*std::ranges::max_element(blocks));
    return 3 * bytes * largest /
           static_cast<double>(program.size_of(
               now.kind == hp::ShardInstructionKind::all_gather ? now.from.dim : now.to.dim)) /
           machine.link(0, 1).bandwidth;
  };
  hd::test::Spread steps;
  for (int step = 0; step < 8; ++step) {
    MPI_Barrier(comm.get());
    const auto begin = Clock::now();
    run.run([&](const hp::ShardInstruction& now) {
      std::this_thread::sleep_for(std::chrono::duration<double>(seconds(now)));
    });
    double mine = std::chrono::duration<double>(Clock::now() - begin).count(), slowest = 0;
    MPI_Allreduce(&mine, &slowest, 1, MPI_DOUBLE, MPI_MAX, comm.get());
    steps.add(slowest, true);
  }
  return steps;
}

}  // namespace

TEST_CASE("HAP's shares gain over equal shares where ranks wait", "[tensor][hap]") {
  const hd::Communicator comm(MPI_COMM_WORLD);
  const hp::TensorProgram program = training();
  std::vector<hd::Device> devices(2, {.name = "fast", .speed = 2});
  devices.resize(4, {.name = "slow"});
  const hd::Machine machine =
      hd::Machine::hierarchical(devices, {{.name = "all", .ranks = 4, .link = {0, 200e3}}});
  const hp::HapResult best = hap(program, machine, {.flops = flops});
  const hp::HapResult even = hap(program, machine, {.flops = flops, .shares = {1, 1, 1, 1}});
  const double predicted = even.price.time() / best.price.time();
  // Ranks spin in collectives while others wait, so that a busy machine cannot be told from this
  // test: all steps count. Other programs make a step longer, and nothing makes it shorter.
  const hd::test::Spread steps = measured(comm, program, best.program, machine);
  const hd::test::Spread even_steps = measured(comm, program, even.program, machine);
  if (comm.rank() == hd::Rank{0})
    std::cout << "shares by speed, s: " << steps << "\nequal shares, s: " << even_steps << '\n';
  const double took = steps.least(), took_even = even_steps.least();
  CAPTURE(predicted, took, took_even, best.price.time(), even.price.time());
  CHECK(predicted >= 1.25);
  CHECK(took_even / took >= 1.25);
  CHECK(took >= best.price.time() * 0.95);
  CHECK(took <= best.price.time() * 1.05);
  CHECK(took_even >= even.price.time() * 0.95);
  CHECK(took_even <= even.price.time() * 1.05);
}

}  // namespace test_program_waits
