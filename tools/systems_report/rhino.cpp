// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors

/// @file
/// Rhino: the plans of models whose good division is known, the stage cut of two branches, the
/// integer program against brute force, and two levels of effort.

#include <algorithm>
#include <cstddef>
#include <random>
#include <string>
#include <vector>

#include <heddle/core/text.hpp>
#include <heddle/machine/machine.hpp>
#include <heddle/systems/hap/program.hpp>
#include <heddle/systems/hap/sharded_program.hpp>
#include <heddle/systems/rhino/rhino.hpp>
#include <heddle/systems/rhino/stage_cut.hpp>
#include <heddle/systems/rhino/strategy_graph.hpp>

#include "comparison.hpp"
#include "support/linear_orders.hpp"
#include "support/strategy_graphs.hpp"
#include "support/tensor_programs.hpp"

namespace hd = heddle;

namespace report {

namespace {

using hd::systems::RhinoPlan;
using hd::systems::TensorForm;
using hd::systems::TensorProgram;

hd::Machine four_devices() {
  return hd::Machine::uniform(4, {.name = "gpu"}, {.latency = 2e-6, .bandwidth = 50e9});
}

/// Returns the forms in which a plan keeps tensors, and whether they are the expected ones.
struct Forms {
  std::string words = {};
  bool expected = true;
};
Forms forms(const TensorProgram& program, const RhinoPlan& plan,
            const std::vector<std::pair<std::string, TensorForm>>& wanted) {
  Forms all;
  for (const auto& [name, form] : wanted) {
    const TensorForm& found = plan.tensors[program.tensor(name)].stored.at(0);
    all.words += hd::text(all.words.empty() ? "" : ", ", name, " ", found);
    all.expected = all.expected && found == form;
  }
  return all;
}

/// Compares the plan of one model by both levels with the forms that are known to be good.
Comparison known(const char* what, const TensorProgram& program,
                 const std::vector<std::pair<std::string, TensorForm>>& wanted) {
  const Forms first = forms(program, hd::systems::rhino(program, four_devices()), wanted);
  const Forms second =
      forms(program, hd::systems::rhino(program, four_devices(), {.level = 2}), wanted);
  std::string expected;
  for (const auto& [name, form] : wanted)
    expected += hd::text(expected.empty() ? "" : ", ", name, " ", form);
  return {what, "rediscovers expert plans", second.words, expected,
          verdict(first.expected && second.expected)};
}

/// Returns the operations of a forward program and its intermediates as a graph.
hd::systems::OperationGraph graph_of(const TensorProgram& program) {
  hd::systems::OperationGraph graph;
  for (const hd::systems::Operation& operation : program.operations)
    graph.work.push_back(program.flops(operation));
  for (std::size_t from = 0; from < program.operations.size(); ++from)
    for (std::size_t to = 0; to < program.operations.size(); ++to)
      for (const std::string& input : program.operations[to].inputs) {
        if (input != program.operations[from].output) continue;
        graph.orders.push_back({from, to});
        graph.data.push_back({{from, to}, program.bytes(program.tensors[program.tensor(input)])});
      }
  return graph;
}

/// Compares the stage cut of two towers, which fit on two ranks but not on one.
Comparison towers() {
  const TensorProgram program = hd::test::two_towers(4096, 1024, 2);
  double weights = 0;
  for (const hd::systems::ProgramTensor& tensor : program.tensors)
    if (tensor.role == hd::systems::TensorRole::parameter) weights += program.bytes(tensor);
  const hd::Machine machine = hd::Machine::uniform(
      2,
      {.name = "cpu",
       .memories = {{.name = "DRAM", .capacity = static_cast<hd::Bytes>(1.4 * weights)}}},
      {.latency = 1e-4, .bandwidth = 1e8});
  const RhinoPlan plan = hd::systems::rhino(
      program, machine,
      {.level = 2, .state_per_parameter = 1, .batch = "b", .microbatches = {32}, .tolerance = 0.2});
  const hd::test::AllOrders orders(graph_of(program), plan.stages, 0.2);
  return {"two towers on two ranks: MB over the cut between stages", "",
          hd::text(plan.cut_bytes / 1e6, " with ", plan.stages, " stages"),
          hd::text("at most ", orders.least / 1e6, ", the least of ", orders.cuts,
                   " cuts of linear orders"),
          verdict(plan.stages == 2 && plan.cut_bytes <= orders.least)};
}

/// Compares the integer program with brute force.
Comparison integer_program() {
  std::mt19937_64 random(29);
  std::size_t equal = 0, solved = 0;
  constexpr std::size_t count = 100;
  for (std::size_t i = 0; i < count; ++i) {
    const hd::systems::StrategyGraph graph = hd::test::random_graph(random, 1 + i % 10, 0);
    const double least = hd::test::brute_force(graph);
    const hd::systems::StrategyChoice found =
        hd::systems::choose_strategies(graph, {.programs = 100'000, .reduce = false});
    solved += found.programs > 0;
    equal += found.strategies && found.cost <= least * (1 + 1e-6);
  }
  return {"integer program against brute force, random graphs of at most 10 cones", "",
          hd::text(equal, " of ", count, " equal"), "all",
          verdict(equal == count && solved == count)};
}

/// Prints what the second level of effort gains on a machine of nodes, and what it costs.
Comparison levels() {
  const hd::Machine nodes = hd::Machine::hierarchical(
      std::vector<hd::Device>(8, {.name = "gpu"}),
      {{.name = "node",
        .ranks = 4,
        .link = {.latency = 2e-6, .bandwidth = 200e9},
        .ports = {25e9, 25e9}},
       {.name = "all", .ranks = 8, .link = {.latency = 5e-6, .bandwidth = 25e9}}});
  double cost = 0, effort = 0, best = 1;
  for (const TensorProgram& program :
       {hd::test::trained_mlp(4096, 4096, 16384), hd::test::trained_mlp(512, 4096, 16384),
        hd::test::trained_mlp(65536, 256, 256), hd::test::tied_embedding(512, 65536, 1024)}) {
    const RhinoPlan first = hd::systems::rhino(program, nodes, {.batch = "b"});
    const RhinoPlan second = hd::systems::rhino(program, nodes, {.level = 2, .batch = "b"});
    cost = std::max(cost, second.cost / first.cost);
    best = std::min(best, second.cost / first.cost);
    effort = std::max(
        effort, static_cast<double>(second.evaluations) / static_cast<double>(first.evaluations));
  }
  return {"level 2 against level 1, 4 models on 2 nodes of 4: cost, evaluations",
          "two levels trade search time and quality",
          hd::text("cost ", best, " to ", cost, ", evaluations at most ", effort), "none",
          not_judged("level 2 has the attempts of level 1 and stops at 10 times its evaluations")};
}

}  // namespace

std::vector<Comparison> rhino() {
  const auto sharded = [](const char* dim) { return hd::systems::TensorForm::sharded(dim); };
  return {known("MLP of 4096 and 16384, 512 samples, 4 devices",
                hd::test::trained_mlp(512, 4096, 16384),
                {{"w1", sharded("h")}, {"a", sharded("h")}, {"w2", sharded("h")}}),
          known("tied embedding of 65536 x 1024, 512 samples",
                hd::test::tied_embedding(512, 65536, 1024),
                {{"table", sharded("v")}, {"logits", sharded("v")}}),
          known("MLP of 256, 65536 samples", hd::test::trained_mlp(65536, 256, 256),
                {{"w1", {}}, {"w2", {}}, {"x", sharded("b")}, {"a", sharded("b")}}),
          towers(),
          integer_program(),
          levels()};
}

}  // namespace report
