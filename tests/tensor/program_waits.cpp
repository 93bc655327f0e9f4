// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
// ranks: 4
// timeout: 120
// alone: yes

// HAP's program on ranks of speeds 2, 2, 1 and 1 that wait as long as their parts and collectives
// are priced: the gain over equal shares, and the step against its prediction.

#include <algorithm>
#include <array>
#include <chrono>
#include <cstddef>
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
#include "support/on_all_ranks.hpp"
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

/// Returns the seconds of a step on the slowest rank.
double measured(const hd::Communicator& comm, const hp::TensorProgram& program,
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
  double slowest = 0;
  for (int step = 0; step < 2; ++step) {  // the first one prepares the collectives
    MPI_Barrier(comm.get());
    const auto begin = Clock::now();
    run.run([&](const hp::ShardInstruction& now) {
      std::this_thread::sleep_for(std::chrono::duration<double>(seconds(now)));
    });
    const double mine = std::chrono::duration<double>(Clock::now() - begin).count();
    MPI_Allreduce(&mine, &slowest, 1, MPI_DOUBLE, MPI_MAX, comm.get());
  }
  return slowest;
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
  std::array forms{hd::test::Form{"shares by speed, s",
                                  [&] { return measured(comm, program, best.program, machine); }},
                   hd::test::Form{"equal shares, s",
                                  [&] { return measured(comm, program, even.program, machine); }}};
  const hd::test::Spread &took = forms[0].spread, &took_even = forms[1].spread;
  const auto near = [](const hd::test::Spread& times, double price) {
    return times.median() >= price * 0.95 && times.median() <= price * 1.05;
  };
  const auto gain = [&] { return took_even.median() / took.median(); };
  const auto holds = [&] {
    return near(took, best.price.time()) && near(took_even, even.price.time()) && gain() >= 1.25;
  };
  if (!hd::test::measure_in_rounds(
          forms, holds, {.print = comm.rank() == hd::Rank{0}, .all = hd::test::on_all_ranks}))
    SKIP(hd::test::no_result);
  INFO("predicted " << best.price.time() << " s and " << even.price.time() << " s, took " << took
                    << " and " << took_even);
  CHECK(predicted >= 1.25);
  CHECK(gain() >= 1.25);
  CHECK(near(took, best.price.time()));
  CHECK(near(took_even, even.price.time()));
}

}  // namespace test_program_waits
