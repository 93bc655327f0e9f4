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

#include <heddle/core/units.hpp>
#include <heddle/execute/clock.hpp>
#include <heddle/machine/machine.hpp>
#include <heddle/systems/hap/hap.hpp>
#include <heddle/systems/hap/program.hpp>
#include <heddle/systems/hap/run_program.hpp>
#include <heddle/systems/hap/sharded_program.hpp>
#include <heddle/systems/rhino/rhino_plan.hpp>
#include <heddle/tensor.hpp>

#include "space.hpp"
#include "support/on_all_ranks.hpp"
#include "support/program_reference.hpp"
#include "support/rounds.hpp"

namespace test_program_waits {

namespace hd = heddle;
namespace hp = heddle::systems;
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

/// A sharded program whose ranks wait after each instruction for as long as it is priced.
class WaitingProgram {
 public:
  WaitingProgram(const hd::Communicator& comm, const hp::TensorProgram& program,
                 const hp::ShardedProgram& sharded, const hd::Machine& machine)
      : m_comm(comm),
        m_program(program),
        m_sharded(sharded),
        m_machine(machine),
        m_run(comm, program, sharded) {
    std::mt19937_64 random(1);
    for (const auto& [name, values] : hd::test::random_values(program, random))
      m_run.set(name, values);
  }

  /// Returns the seconds of a step, of the slowest rank. Ranks meet before each collective, because
  /// they spin in it while they wait for another rank.
  double step() {
    std::size_t done = 0;
    hd::test::nap_until_all_arrive(m_comm.get());
    const hd::Seconds begin = hd::steady_seconds();
    m_run.run([&](const hp::ShardInstruction& now) {
      std::this_thread::sleep_for(std::chrono::duration<double>(seconds(now)));
      if (++done < m_sharded.instructions.size() && communicates(m_sharded.instructions[done]))
        hd::test::nap_until_all_arrive(m_comm.get());
    });
    double slowest = hd::steady_seconds() - begin;
    hd::test::nap_until_all_arrive(m_comm.get());
    MPI_Allreduce(MPI_IN_PLACE, &slowest, 1, MPI_DOUBLE, MPI_MAX, m_comm.get());
    return slowest;
  }

 private:
  using Kind = hp::ShardInstructionKind;

  [[nodiscard]] static bool communicates(const hp::ShardInstruction& instruction) {
    return instruction.kind != Kind::compute && instruction.kind != Kind::place &&
           instruction.kind != Kind::slice;
  }

  /// Returns the size of the largest block of a dimension, as a share of it.
  [[nodiscard]] double largest_share(const std::string& dim) const {
    const auto& blocks = m_sharded.blocks[m_program.dimension(dim)];
    return static_cast<double>(*std::ranges::max_element(blocks)) /
           static_cast<double>(m_program.size_of(dim));
  }

  /// Collectives are priced one by one, as parts of a program with no other instruction.
  [[nodiscard]] hd::Seconds seconds(const hp::ShardInstruction& now) const {
    if (now.kind == Kind::compute) {
      const std::string& dim = now.rule.divided;
      const auto rank = static_cast<std::size_t>(+m_comm.rank());
      const double share =
          dim.empty() ? 1.0
                      : static_cast<double>(m_sharded.blocks[m_program.dimension(dim)][rank]) /
                            static_cast<double>(m_program.size_of(dim));
      return m_program.flops(m_program.operations[now.operation]) * share /
             (flops * m_machine.device(m_comm.rank()).speed);
    }
    if (!communicates(now)) return 0;
    const double bytes = m_program.bytes(m_program.tensors[m_program.tensor(now.tensor)]);
    const double whole = bytes / m_machine.link(0, 1).bandwidth;
    if (now.kind == Kind::all_reduce) return 1.5 * whole;
    return 3 * whole * largest_share(now.kind == Kind::all_gather ? now.from.dim : now.to.dim);
  }

  const hd::Communicator& m_comm;
  const hp::TensorProgram& m_program;
  const hp::ShardedProgram& m_sharded;
  const hd::Machine& m_machine;
  hd::systems::ProgramRun<double, Space> m_run;
};

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
  WaitingProgram by_speed(comm, program, best.program, machine),
      equal(comm, program, even.program, machine);
  std::array forms{hd::test::Form{"shares by speed, s", [&] { return by_speed.step(); }},
                   hd::test::Form{"equal shares, s", [&] { return equal.step(); }}};
  const hd::test::Spread &took = forms[0].spread, &took_even = forms[1].spread;
  const auto holds = [&] {
    return took_even.median() / took.median() >= 1.25 &&
           took.median() <= best.price.time() * 1.05 &&
           took_even.median() <= even.price.time() * 1.05;
  };
  if (!hd::test::measure_in_rounds(
          forms, holds, {.print = comm.rank() == hd::Rank{0}, .all = hd::test::on_all_ranks}))
    SKIP(hd::test::no_result);
  INFO("shares by speed " << took << ", equal shares " << took_even);
  CAPTURE(predicted, best.price.time(), even.price.time());
  CHECK(predicted >= 1.25);
  CHECK(took_even.median() / took.median() >= 1.25);
  CHECK(took.least() >= best.price.time() * 0.95);
  CHECK(took.median() <= best.price.time() * 1.05);
  CHECK(took_even.least() >= even.price.time() * 0.95);
  CHECK(took_even.median() <= even.price.time() * 1.05);
}

}  // namespace test_program_waits
