// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
// ranks: 1 2 3 4
// timeout: 240

// Sharded programs on ranks with uneven blocks: HAP's and random ones compute what one core does.

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <iostream>
#include <random>
#include <sstream>
#include <streambuf>
#include <string>
#include <utility>
#include <vector>

#include <Kokkos_Core.hpp>
#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers_exception.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>
#include <mpi.h>

#include <heddle/core/error.hpp>
#include <heddle/machine/machine.hpp>
#include <heddle/systems/hap/hap.hpp>
#include <heddle/systems/hap/program.hpp>
#include <heddle/systems/hap/reverse_program.hpp>
#include <heddle/systems/hap/run_program.hpp>
#include <heddle/systems/hap/sharded_program.hpp>
#include <heddle/systems/rhino/rhino_plan.hpp>
#include <heddle/tensor.hpp>

#include "space.hpp"
#include "support/cases.hpp"
#include "support/program_reference.hpp"
#include "support/program_runs.hpp"
#include "support/random_program.hpp"

namespace test_run_program {

namespace hd = heddle;
namespace hp = heddle::systems;
using Catch::Matchers::ContainsSubstring;
using Catch::Matchers::MessageMatches;
using examples::Space;

namespace {

/// A machine on which the ranks have speeds 1, 2, 3, 1, ... and messages cost little or much.
hd::Machine machine_of(int ranks, double bandwidth) {
  std::vector<hd::Device> devices;
  for (int r = 0; r < ranks; ++r) devices.push_back({.name = "device", .speed = 1.0 + r % 3});
  return hd::Machine::hierarchical(std::move(devices),
                                   {{.name = "all", .ranks = ranks, .link = {0, bandwidth}}});
}

/// Returns a random program: outputs of operations have any form, and blocks any sizes.
hp::ShardedProgram random_sharding(const hp::TensorProgram& program, int ranks,
                                   std::mt19937_64& random) {
  const hp::ShardGroups groups(program, ranks);
  // Not all choices of forms can be computed. If many fail, the forms are free.
  for (int attempt = 0;; ++attempt) {
    hp::HapOptions options{.flops = 1e3, .rounds = 1};
    for (const hp::Operation& operation : program.operations) {
      const auto rules = shard_rules(program, operation);
      if (ranks == 1 || attempt == 100) continue;
      options.forms.emplace_back(operation.output, rules[random() % rules.size()].output);
    }
    std::vector<std::vector<double>> shares(groups.size());
    for (auto& of_group : shares) {
      double sum = 0;
      for (int r = 0; r < ranks; ++r) {
        of_group.push_back(0.1 + static_cast<double>(random() % 10));
        sum += of_group.back();
      }
      for (double& share : of_group) share /= sum;
    }
    std::size_t candidates = 0;
    const auto found =
        hap_search(program, machine_of(ranks, 1e3), groups, shares, options, candidates);
    if (found) return *found;
  }
}

}  // namespace

TEST_CASE("random programs on ranks compute what one core does", "[tensor][hap]") {
  const hd::Communicator comm(MPI_COMM_WORLD);
  const std::uint64_t seeds = hd::test::cases(25, 2000);
  std::size_t collectives = 0;
  for (std::uint64_t seed = 0; seed < seeds; ++seed) {
    CAPTURE(seed);
    std::mt19937_64 random(seed);
    const hp::TensorProgram program = hd::test::random_program(random, 8);
    const hd::test::ProgramValues given = hd::test::random_values(program, random);
    hd::test::ProgramValues expected = given;
    hd::test::compute_reference(program, expected);
    const hp::HapResult found =
        hap(program, machine_of(comm.size(), seed % 2 == 0 ? 1e3 : 1e6), {.flops = 1e3});
    hd::test::compare_run(comm, program, found.program, given, expected);
    const hp::ShardedProgram any = random_sharding(program, comm.size(), random);
    for (const hp::ShardInstruction& instruction : any.instructions)
      collectives += instruction.kind > hp::ShardInstructionKind::slice;
    hd::test::compare_run(comm, program, any, given, expected);
  }
  CHECK((comm.size() == 1 || collectives > seeds));
}

TEST_CASE("generated backward programs on ranks compute what one core does", "[tensor][hap]") {
  const hd::Communicator comm(MPI_COMM_WORLD);
  const std::uint64_t seeds = hd::test::cases(15, 1000);
  std::size_t gradients = 0;
  for (std::uint64_t seed = 0; seed < seeds; ++seed) {
    CAPTURE(seed);
    std::mt19937_64 random(seed);
    hp::TensorProgram program = hd::test::random_program(random, 4);
    const std::string output = program.operations.back().output;
    try {
      program = reverse(program, output);
    } catch (const hd::contract_error&) {
      continue;  // it depends on no parameter
    }
    for (hp::ProgramTensor& tensor : program.tensors) tensor.type = hd::Scalar::f64;
    const hd::test::ProgramValues given = hd::test::random_values(program, random);
    hd::test::ProgramValues expected = given;
    hd::test::compute_reference(program, expected);
    const hp::ShardedProgram any = random_sharding(program, comm.size(), random);
    hd::test::compare_run(comm, program, any, given, expected);
    ++gradients;
  }
  CHECK(gradients > seeds / 2);
}

TEST_CASE("a linear layer trains in HAP's program as on one core", "[tensor][hap]") {
  using Role = hp::TensorRole;
  using Kind = hp::OperationKind;
  const hd::Communicator comm(MPI_COMM_WORLD);
  const hp::TensorProgram program{
      .name = "training",
      .dimensions = {{"b", 13}, {"i", 17}, {"o", 11}},
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
  std::mt19937_64 random(1);
  hd::test::ProgramValues values = hd::test::random_values(program, random);
  const hp::HapResult found = hap(program, machine_of(comm.size(), 1e5), {.flops = 1e3});
  hd::systems::ProgramRun<double, Space> run(comm, program, found.program);
  for (const auto& [name, of] : values) run.set(name, of);
  for (int step = 0; step < 5; ++step) {
    run.run();
    run.advance();
    hd::test::compute_reference(program, values);
    values["w"] = values["new_w"];
  }
  const std::vector<double> w = run.whole("w");
  for (std::size_t i = 0; i < w.size(); ++i) CHECK(std::abs(w[i] - values["w"][i]) < 1e-12);
}

TEST_CASE("the guide's program computes its product", "[tensor][hap]") {
  const hd::Communicator comm(MPI_COMM_WORLD);
  const hd::Machine machine = machine_of(comm.size(), 1e9);
  const std::vector<double> x(64 * 32, 0.5), w(32 * 48, 0.25);
  std::ostringstream printed;
  std::streambuf* const terminal = std::cout.rdbuf(printed.rdbuf());

  hd::systems::TensorProgram layer{.name = "layer"};
  layer.dimensions = {{"b", 64}, {"i", 32}, {"o", 48}};
  layer.tensors = {{"x", {"b", "i"}, hd::systems::TensorRole::input},
                   {"w", {"i", "o"}, hd::systems::TensorRole::parameter},
                   {"y", {"b", "o"}, hd::systems::TensorRole::output}};
  layer.operations = {{hd::systems::OperationKind::matmul, {"x", "w"}, "y"}};

  const hd::systems::HapResult found = hd::systems::hap(layer, machine, {.flops = 1e12});
  std::cout << found;
  std::cout.rdbuf(terminal);
  CHECK_THAT(printed.str(), ContainsSubstring("compute y"));

  hd::systems::ProgramRun<double> run(comm, layer, found.program);
  run.set("x", x);  // all elements, on every rank
  run.set("w", w);
  run.run();
  const std::vector<double> y = run.whole("y");

  CHECK(y == std::vector<double>(64 * 48, 4.0));
}

TEST_CASE("a run of a program says what it lacks", "[tensor][hap]") {
  const hd::Communicator comm(MPI_COMM_WORLD);
  const hp::TensorProgram program{
      .name = "rows",
      .dimensions = {{"a", 8}, {"d", 8}},
      .tensors = {{"table", {"d"}, hp::TensorRole::parameter},
                  {"index", {"a"}, hp::TensorRole::input},
                  {"rows", {"a"}, hp::TensorRole::output}},
      .operations = {{hp::OperationKind::gather, {"table", "index"}, "rows"}}};
  const hp::HapResult found = hap(program, machine_of(comm.size(), 1e6));
  hd::systems::ProgramRun<float, Space> run(comm, program, found.program);
  const std::vector<float> values(8, 1);
  run.set("table", values);
  CHECK_THROWS_MATCHES(run.run(), hd::contract_error,
                       MessageMatches(ContainsSubstring("'index'") && ContainsSubstring("set()")));
  CHECK_THROWS_MATCHES(run.set("index", std::vector<float>(8, 8)), hd::contract_error,
                       MessageMatches(ContainsSubstring("'table' of 8 rows")));
  CHECK_THROWS_MATCHES(run.set("rows", values), hd::contract_error,
                       MessageMatches(ContainsSubstring("output")));
  CHECK_THROWS_MATCHES(run.whole("rows"), hd::contract_error,
                       MessageMatches(ContainsSubstring("no values")));
  hp::ShardedProgram other = found.program;
  ++other.ranks;
  for (auto& blocks : other.blocks)
    if (!blocks.empty()) blocks.push_back(0);
  CHECK_THROWS_AS((hd::systems::ProgramRun<float, Space>(comm, program, other)),
                  hd::contract_error);
}

}  // namespace test_run_program
