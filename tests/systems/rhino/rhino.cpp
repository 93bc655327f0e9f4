// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors

// The planner rhino(): the plans of known models with closed forms of their messages, small random
// programs against brute force over all placements, two levels of effort, memory, refusals.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <limits>
#include <random>
#include <string>
#include <vector>

#include <catch2/catch_approx.hpp>
#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers_exception.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>

#include <heddle/core/error.hpp>
#include <heddle/core/text.hpp>
#include <heddle/machine/machine.hpp>
#include <heddle/systems/hap/program.hpp>
#include <heddle/systems/hap/sharded_program.hpp>
#include <heddle/systems/rhino/rhino.hpp>

#include "support/cases.hpp"
#include "support/random_program.hpp"
#include "support/tensor_programs.hpp"

namespace test_rhino {

using namespace heddle;
using Catch::Approx;
using systems::RhinoPlan;
using systems::TensorForm;
using systems::TensorProgram;
using systems::TensorRole;

constexpr double latency = 2e-6, bandwidth = 50e9, start = 1e-5;

Machine gpus(int ranks, Bytes capacity = 0) {
  return Machine::uniform(ranks, {.name = "gpu", .memories = {{"HBM", capacity}}},
                          {latency, bandwidth});
}

/// The seconds of a ring over p ranks in which each sends n / p bytes p - 1 times.
double ring(int p, double n) { return (p - 1) * latency + (p - 1.0) / p * n / bandwidth; }

const TensorForm& stored(const RhinoPlan& plan, const TensorProgram& program, const char* name,
                         std::size_t axis = 0) {
  return plan.tensors[program.tensor(name)].stored[axis];
}
const TensorForm& delivered(const RhinoPlan& plan, const TensorProgram& program, const char* name,
                            std::size_t axis = 0) {
  return plan.tensors[program.tensor(name)].delivered[axis];
}

TEST_CASE("an MLP with few samples is divided by columns, then by rows") {
  const TensorProgram program = test::trained_mlp(512, 4096, 16384);
  for (const int level : {1, 2}) {
    const RhinoPlan plan = systems::rhino(program, gpus(4), {.level = level});
    INFO(plan);
    CHECK(plan.optimal);
    CHECK(plan.ways == std::vector{4});
    CHECK(stored(plan, program, "w1") == systems::TensorForm::sharded("h"));
    CHECK(stored(plan, program, "w2") == systems::TensorForm::sharded("h"));
    CHECK(delivered(plan, program, "a") == systems::TensorForm::sharded("h"));
    CHECK(stored(plan, program, "y") == systems::TensorForm::partial());
    CHECK(delivered(plan, program, "w1_next") == systems::TensorForm::sharded("h"));
    check(program, sharded_program(program, plan));
    // One all-reduce of y; the gradient of x is a result, so a reduce-scatter is enough for it.
    const double n = 512 * 4096 * 4;
    CHECK(plan.communication == Approx(2 * start + 3 * ring(4, n)).epsilon(1e-9));
    CHECK(plan.cost == Approx(plan.compute + plan.communication).epsilon(1e-9));
  }
}

TEST_CASE("a small model with many samples is data parallel") {
  const TensorProgram program = test::trained_mlp(65536, 256, 256);
  for (const int level : {1, 2}) {
    const RhinoPlan plan = systems::rhino(program, gpus(4), {.level = level});
    INFO(plan);
    for (const char* parameter : {"w1", "w2"})
      CHECK(stored(plan, program, parameter) == TensorForm{});
    for (const char* samples : {"x", "z", "a", "y", "y_gradient", "a_gradient", "x_gradient"})
      CHECK(stored(plan, program, samples) == systems::TensorForm::sharded("b"));
    // The all-reduces of two gradients.
    const double n = 256 * 256 * 4;
    CHECK(plan.communication == Approx(2 * (start + 2 * ring(4, n))).epsilon(1e-9));
  }
}

TEST_CASE("a large embedding is divided by its vocabulary") {
  const TensorProgram program = test::tied_embedding(512, 65536, 1024);
  for (const int level : {1, 2}) {
    const RhinoPlan plan = systems::rhino(program, gpus(8), {.level = level});
    INFO(plan);
    CHECK(stored(plan, program, "table") == systems::TensorForm::sharded("v"));
    CHECK(stored(plan, program, "logits") == systems::TensorForm::sharded("v"));
    CHECK(stored(plan, program, "rows") == systems::TensorForm::partial());
    // The all-reduces of the rows and of their gradients.
    const double n = 512 * 1024 * 4;
    CHECK(plan.communication == Approx(2 * (start + 2 * ring(8, n))).epsilon(1e-9));
  }
}

TEST_CASE("two towers that do not fit into one node become two stages, cut at their outputs") {
  const TensorProgram program = test::two_towers(4096, 1024, 3);
  double weights = 0;
  for (const systems::ProgramTensor& tensor : program.tensors)
    if (tensor.role == systems::TensorRole::parameter) weights += program.bytes(tensor);
  const Machine slow = Machine::uniform(
      2, {.name = "cpu", .memories = {{"DRAM", static_cast<Bytes>(1.4 * weights)}}}, {1e-4, 1e8});
  for (const int level : {1, 2}) {
    const RhinoPlan plan =
        systems::rhino(program, slow, {.level = level, .batch = "b", .microbatches = {32}});
    INFO(plan);
    CHECK(plan.stages == 2);
    CHECK(plan.cut_bytes == 4096 * 8 * 4);  // the output of one tower
    for (const char tower : {'l', 'r'}) {
      std::vector<int> stages;
      for (std::size_t o = 0; o < program.operations.size(); ++o)
        if (program.operations[o].output[0] == tower) stages.push_back(plan.operations[o].stage);
      CHECK(std::ranges::min(stages) == std::ranges::max(stages));
    }
  }
}

/// Returns a random program of up to `most` operations on a few dimensions.
TensorProgram random_program(std::mt19937_64& random, std::size_t most) {
  using enum systems::OperationKind;
  TensorProgram program;
  for (const char* name : {"b", "c", "d", "e"})
    program.dimensions.push_back({name, static_cast<std::int64_t>(4 << random() % 6)});
  program.tensors.push_back({"t0", {"b", "c"}, systems::TensorRole::input});
  const std::size_t count = 1 + random() % most;
  for (std::size_t o = 0; o < count; ++o) {
    // The input is a tensor that exists; weights are added where they are needed.
    std::vector<std::size_t> usable;
    for (std::size_t t = 0; t < program.tensors.size(); ++t)
      if (program.tensors[t].role != systems::TensorRole::parameter) usable.push_back(t);
    const systems::ProgramTensor from = program.tensors[usable[random() % usable.size()]];
    systems::ProgramTensor to{.name = text("t", o + 1), .dims = from.dims};
    systems::Operation operation{.inputs = {from.name}, .output = to.name};
    const std::uint64_t kind = random() % 4;
    if (kind < 2) {  // a linear layer from the last dimension to another one
      operation.kind = matmul;
      for (const char* name : {"c", "d", "e"})
        if (std::ranges::find(from.dims, name) == from.dims.end()) to.dims.back() = name;
      const std::string weight = text("w", o);
      program.tensors.push_back(
          {weight, {from.dims.back(), to.dims.back()}, systems::TensorRole::parameter});
      operation.inputs.push_back(weight);
    } else if (kind == 2) {
      operation.kind = elementwise;
      operation.function = random() % 2 == 0 ? "relu" : "scale";
    } else {
      operation.kind = elementwise;
      operation.function = "multiply";
      operation.inputs.push_back(from.name);
    }
    program.tensors.push_back(to);
    program.operations.push_back(operation);
  }
  for (systems::ProgramTensor& tensor : program.tensors) {
    if (tensor.role != systems::TensorRole::intermediate) continue;
    bool read = false;
    for (const systems::Operation& operation : program.operations)
      read = read || std::ranges::find(operation.inputs, tensor.name) != operation.inputs.end();
    if (!read || random() % 4 == 0) tensor.role = systems::TensorRole::output;
  }
  return program;
}

/// The least cost of all placements of a program along one axis of p ranks, by trying all.
class AllPlacements {
 public:
  AllPlacements(const TensorProgram& program, int p, double rate)
      : m_program(program), m_p(p), m_rate(rate), m_raw(program.tensors.size()) {
    choose(0, 0);
  }
  double least = std::numeric_limits<double>::infinity();

 private:
  static constexpr double infinity = std::numeric_limits<double>::infinity();

  [[nodiscard]] double change(const TensorForm& from, const TensorForm& to, double n) const {
    using enum systems::TensorForm::Kind;
    if (from == to) return 0;
    if (to.kind == partial) return infinity;
    if (from.kind == replicated) return 0;
    if (from.kind == sharded && to.kind == sharded)
      return start + (m_p - 1) * latency + n / m_p * (m_p - 1) / m_p / bandwidth;
    return start + (from.kind == partial && to.kind == replicated ? 2 : 1) * ring(m_p, n);
  }
  // Chooses the placements of operation o and later ones, then those of tensors.
  void choose(std::size_t o, double cost) {
    if (o == m_program.operations.size()) {
      for (std::size_t t = 0; t < m_program.tensors.size(); ++t) cost += best_delivery(t);
      least = std::min(least, cost);
      return;
    }
    const systems::Operation& operation = m_program.operations[o];
    for (const systems::ShardRule& each : systems::shard_rules(m_program, operation)) {
      const auto is_even = [&](const TensorForm& form) {
        return form.kind != systems::TensorForm::Kind::sharded ||
               m_program.size_of(form.dim) % m_p == 0;
      };
      if (!is_even(each.output) || !std::ranges::all_of(each.inputs, is_even)) continue;
      m_chosen.push_back(each);
      m_raw[m_program.tensor(operation.output)] = each.output;
      choose(o + 1, cost + m_program.flops(operation) / (each.divided.empty() ? 1 : m_p) / m_rate);
      m_chosen.pop_back();
    }
  }
  // The operations are fixed, so each tensor's placements can be chosen alone.
  [[nodiscard]] double best_delivery(std::size_t t) const {
    const systems::ProgramTensor& tensor = m_program.tensors[t];
    std::vector<TensorForm> demands;
    for (std::size_t o = 0; o < m_chosen.size(); ++o)
      for (std::size_t i = 0; i < m_chosen[o].inputs.size(); ++i)
        if (m_program.operations[o].inputs[i] == tensor.name)
          demands.push_back(m_chosen[o].inputs[i]);
    const double n = m_program.bytes(tensor);
    std::vector<TensorForm> whole = {TensorForm{}};
    for (const std::string& dim : tensor.dims)
      if (m_program.size_of(dim) % m_p == 0) whole.push_back(systems::TensorForm::sharded(dim));
    const bool given =
        tensor.role == systems::TensorRole::input || tensor.role == systems::TensorRole::parameter;
    const bool output = tensor.role == systems::TensorRole::output;
    const bool delivers = demands.size() > 1 || output;
    std::vector<TensorForm> before = given ? whole : std::vector{m_raw[t]};
    double best = infinity;
    for (const TensorForm& from : before) {
      std::vector<TensorForm> after = {from};
      if (delivers && tensor.role != systems::TensorRole::input) {
        after = whole;
        if (!output) after.push_back(systems::TensorForm::partial());
      }
      for (const TensorForm& to : after) {
        double sum = change(from, to, n);
        for (const TensorForm& demand : demands) sum += change(to, demand, n);
        best = std::min(best, sum);
      }
    }
    return best;
  }

  const TensorProgram& m_program;
  int m_p;
  double m_rate;
  std::vector<TensorForm> m_raw;
  std::vector<systems::ShardRule> m_chosen;
};

TEST_CASE("with one axis and every operation as a cone, no placement of small programs is better") {
  std::mt19937_64 random(29);
  std::size_t sends = 0, better = 0;
  const std::uint64_t count = test::cases(60, 5'000);
  for (std::uint64_t i = 0; i < count; ++i) {
    TensorProgram program = random_program(random, 5);
    if (random() % 2 == 0) program.dimensions[0].size = 3;  // samples cannot be divided
    const int ranks = i % 2 == 0 ? 2 : 4;
    const double rate = 1e6 * static_cast<double>(1 + i % 7);
    // The machine has one axis if it has two ranks; of four, level 1 tries one.
    const RhinoPlan plan =
        systems::rhino(program, gpus(ranks), {.level = ranks == 2 ? 2 : 1, .flops = rate});
    const AllPlacements all(program, ranks, rate);
    INFO(program << plan);
    CHECK(plan.optimal);
    check(program, sharded_program(program, plan));
    if (ranks == 2)
      CHECK(plan.cost == Approx(all.least).epsilon(1e-6));
    else
      CHECK(plan.cost >= all.least * (1 - 1e-6));  // cones: some placements are not tried
    better += plan.cost > all.least * (1 + 1e-6);
    sends += plan.communication > 0;
    // No candidate of a group is better beside the strategies of the others.
    for (const systems::RhinoGroup& group : plan.groups) {
      const systems::RhinoCandidate& chosen = group.candidates[group.chosen];
      for (const systems::RhinoCandidate& other : group.candidates)
        CHECK(chosen.own + chosen.changes <= (other.own + other.changes) * (1 + 1e-6));
    }
  }
  CHECK(sends > count / 10);
  CHECK(better < count / 4);
}

TEST_CASE("level 2 costs no more than level 1, with at most ten times its evaluations") {
  std::mt19937_64 random(7);
  const Machine nodes = Machine::hierarchical(
      std::vector<Device>(8, {.name = "gpu"}),
      {{.name = "node", .ranks = 4, .link = {2e-6, 100e9}, .ports = {12e9, 12e9}},
       {.name = "all", .ranks = 8, .link = {5e-6, 12e9}}});
  std::size_t improved = 0;
  const std::uint64_t count = test::cases(25, 1'000);
  for (std::uint64_t i = 0; i < count; ++i) {
    TensorProgram program = random_program(random, 8);
    if (i % 5 == 0) program = test::trained_mlp(64 << i % 4, 64 << i % 3, 512);
    if (i % 5 == 1) program = test::tied_embedding(64, 256 << i % 4, 64);
    systems::RhinoOptions options{
        .flops = 1e10, .batch = i % 2 == 0 ? "b" : "", .microbatches = {2, 4}};
    const RhinoPlan first = systems::rhino(program, nodes, options);
    options.level = 2;
    const RhinoPlan second = systems::rhino(program, nodes, options);
    INFO(program << first << second);
    CHECK(second.cost <= first.cost);
    CHECK(second.evaluations <= 10 * first.evaluations);
    CHECK(second.attempts > first.attempts);
    improved += second.cost < first.cost * (1 - 1e-9);
  }
  CHECK(improved > 0);
}

TEST_CASE("parameters are divided when copies of them do not fit") {
  const TensorProgram program = test::trained_mlp(65536, 256, 256);
  const RhinoPlan copies = systems::rhino(program, gpus(4), {.state_per_parameter = 4000});
  CHECK(stored(copies, program, "w1") == TensorForm{});
  const auto capacity = static_cast<Bytes>(copies.bytes * 0.6);
  for (const int level : {1, 2}) {
    const RhinoPlan plan =
        systems::rhino(program, gpus(4, capacity), {.level = level, .state_per_parameter = 4000});
    INFO(plan);
    CHECK(plan.bytes <= static_cast<double>(capacity));
    CHECK(plan.cost >= copies.cost);
    CHECK(stored(plan, program, "w1").kind == systems::TensorForm::Kind::sharded);
    CHECK(stored(plan, program, "w2").kind == systems::TensorForm::Kind::sharded);
  }
}

TEST_CASE("random programs of all kinds get a plan that fits, or the reason why there is none") {
  std::size_t none = 0, tried = 0;
  const std::uint64_t count = test::cases(120, 100'000);
  for (std::uint64_t seed = 0; seed < count; ++seed) {
    CAPTURE(seed);
    std::mt19937_64 random(seed);
    const TensorProgram program = test::random_program(random, 10);
    const int ranks = 1 + static_cast<int>(random() % 6);
    const auto capacity = static_cast<Bytes>(random() % 3 == 0 ? 0 : 400 + random() % 12'000);
    const systems::RhinoOptions options{.level = 1 + static_cast<int>(seed % 2),
                                        .flops = 1e6,
                                        .batch = seed % 3 == 0 ? "a" : "",
                                        .microbatches = {2, 3}};
    try {
      const RhinoPlan plan = systems::rhino(program, gpus(ranks, capacity), options);
      CHECK((capacity == 0 || plan.bytes <= static_cast<double>(capacity) * (1 + 1e-9)));
      CHECK(plan.cost >= 0);
      CHECK(plan.operations.size() == program.operations.size());
      tried += options.level == 1 && plan.attempts > 1;  // pipelines, as well
      if (plan.stages == 1 && plan.ways.size() <= 1) check(program, sharded_program(program, plan));
      for (const systems::RhinoOperation& operation : plan.operations) {
        CHECK(operation.stage >= 0);
        CHECK(operation.stage < plan.stages);
      }
    } catch (const infeasible& error) {
      ++none;
      CHECK(std::string(error.what()).find("the largest tensor, '") != std::string::npos);
      CHECK(capacity > 0);
    }
  }
  CHECK(none > 0);
  CHECK(none < count / 2);
  CHECK(tried > 0);
}

TEST_CASE("the slowest device decides how long an operation takes") {
  const TensorProgram program = test::two_towers(64, 64, 1);
  std::vector<Device> devices = {{.name = "fast", .speed = 2}, {.name = "slow", .speed = 0.5}};
  const Machine machine = Machine::hierarchical(devices, {{.name = "all", .ranks = 2}});
  const RhinoPlan plan = systems::rhino(program, machine, {.flops = 1e9, .start = 0});
  CHECK(plan.communication == 0);
  CHECK(plan.cost == Approx(program.flops() / 2 / 0.5e9));
  const RhinoPlan one = systems::rhino(program, gpus(1), {.flops = 1e9});
  CHECK(one.ways.empty());
  CHECK(one.cost == Approx(program.flops() / 1e9));
}

TEST_CASE("programs, options and machines that cannot be planned are rejected with a remedy") {
  using Catch::Matchers::ContainsSubstring;
  using Catch::Matchers::MessageMatches;
  const auto rejected = [](const auto& make, const char* phrase) {
    CHECK_THROWS_MATCHES(make(), contract_error, MessageMatches(ContainsSubstring(phrase)));
  };
  TensorProgram program = test::trained_mlp(8, 8, 8);
  const Machine machine = gpus(2);
  program.operations[0].inputs[1] = "w7";
  rejected([&] { return systems::rhino(program, machine); }, "tensor 'w7' is undefined");
  program.operations[0].inputs[1] = "w1";
  rejected([&] { return systems::rhino(program, machine, {.level = 3}); }, "level = 3");
  rejected([&] { return systems::rhino(program, machine, {.flops = 0}); }, "use finite flops > 0");
  rejected([&] { return systems::rhino(program, machine, {.batch = "n"}); },
           "dimension 'n' is undefined");
  rejected([&] { return systems::rhino(program, machine, {.batch = "b", .microbatches = {3}}); },
           "dimension 'b' of 8");
  program = test::trained_mlp(8, 64, 8);
  program.dimensions.push_back({"big", 1 << 20});
  program.tensors.push_back({"table", {"big", "i"}, systems::TensorRole::parameter});
  program.tensors.push_back({"looked", {"big"}, systems::TensorRole::output});
  program.operations.push_back({systems::OperationKind::reduce, {"table"}, "looked", "sum"});
  CHECK_THROWS_MATCHES(systems::rhino(program, gpus(2, 100'000'000)), infeasible,
                       MessageMatches(ContainsSubstring("the largest tensor, 'table'") &&
                                      ContainsSubstring("use more ranks")));
  CHECK(systems::rhino(program, gpus(2, 300'000'000)).bytes <= 300'000'000);
}

TEST_CASE("a plan prints its mesh and its strategies") {
  const RhinoPlan plan = systems::rhino(test::trained_mlp(512, 4096, 16384), gpus(4));
  const std::string printed = text(plan);
  CHECK(printed.starts_with("1 stage, axes of 4 ranks, 1 microbatch: "));
  CHECK(printed.find("axis 0, w1: sharded(h)") != std::string::npos);
  CHECK(printed.find("axis 0, y: divided by h, partial") != std::string::npos);
}

}  // namespace test_rhino
