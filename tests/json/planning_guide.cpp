// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors

// What docs/planning.md shows, as it stands there; structure.planning compares.

#include <cstddef>
#include <cstdint>
#include <iostream>
#include <string>
#include <utility>
#include <vector>

#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>

#include <heddle/json.hpp>
#include <heddle/machine.hpp>
#include <heddle/plan.hpp>
#include <heddle/schedule.hpp>
#include <heddle/systems/hap/program.hpp>
#include <heddle/systems/hap/sharded_program.hpp>
#include <heddle/systems/planners.hpp>
#include <heddle/systems/rhino/rhino.hpp>
#include <heddle/systems/rhino/rhino_plan.hpp>
#include <heddle/trace.hpp>

#include "support/printed.hpp"

namespace test_planning_guide {

namespace hd = heddle;

TEST_CASE("a profile and a machine become a plan that is better than equal stages") {
  const hd::test::InFolder folder("planning_guide_files");
  const hd::test::Printed printed;

  // Times in seconds, for one sample and for eight.
  hd::plan::Profile profile{.model = "gpt", .input = 8 << 20, .reference = "fast"};
  for (int layer = 0; layer < 12; ++layer)
    profile.layers.push_back({.name = "block",
                              .output = 8 << 20,
                              .saved = 128 << 20,
                              .parameters = 28 << 20,
                              .measured = {{"fast", 1, 1, {2e-3, 2e-3, 2e-3, 1e-3}},
                                           {"fast", 1, 8, {9e-3, 9e-3, 9e-3, 1e-3}}}});

  const hd::Memory memory{.name = "HBM", .capacity = 6'000'000'000};
  const hd::Machine near = hd::Machine::uniform(4, {.name = "fast", .memories = {memory}},
                                                {.latency = 2e-6, .bandwidth = 100e9});
  const hd::Machine far =
      hd::Machine::uniform(2, {.name = "slow", .speed = 0.4, .memories = {memory}},
                           {.latency = 5e-6, .bandwidth = 20e9});
  const hd::Machine machine =
      hd::join({near, far}, {.latency = 1e-3, .bandwidth = 1.25e9}, hd::Shared{"line", 1.25e9});

  hd::json::write_profile("gpt.profile.json", profile);
  hd::json::write_machine("sites.json", machine);

  const hd::plan::PlanSearch found =
      hd::plan::search(profile, machine, {.batch = 64}, hd::systems::planners());
  std::cout << found << '\n' << found.best() << '\n';
  hd::json::write_plan("plan.json", found.best());

  const hd::Plan plan = hd::json::read_plan("plan.json");
  const hd::plan::PlanProblem problem(profile, machine, {.batch = plan.batch()});
  std::cout << to_grid(simulated_timeline(plan, problem), 100);
  if (const auto shortage = memory_shortage(plan, problem))
    std::cout << "rank " << shortage->rank << " needs " << shortage->needed << " bytes\n";

  CHECK(plan == found.best());
  CHECK(hd::json::read_profile("gpt.profile.json") == profile);
  CHECK(hd::json::read_machine("sites.json") == machine);
  CHECK_FALSE(memory_shortage(plan, problem));
  CHECK(stage_prices(plan, problem).size() == plan.stages.size());
  CHECK_THAT(printed.text.str(),
             Catch::Matchers::StartsWith(
                 "planner      formula     simulated   memory of the fullest rank  candidates\n"
                 "DAPPLE       0.871766 s  1.26515 s   5.69167 GB                  821\n"
                 "PipeDream    0.858993 s  1.26265 s   4.75424 GB                  74007\n"
                 "Metis        0.873973 s  1.26265 s   4.75424 GB                  361\n"
                 "HGTrainer    0.868973 s  1.26265 s   4.75424 GB                  9359\n"
                 "Holmes       1.25805 s   1.25856 s   4.74795 GB                  22\n"
                 "Frontier 3D  1.63088 s   1.58301 s   3.69938 GB                  38\n"
                 "Replicas     0.881297 s  0.881297 s  4.80667 GB                  39\n"
                 "1f1b, 8 microbatches of 8 samples\n"
                 "stage 0: layers 0-11, ranks 0-3, samples 2 2 2 2\n"
                 "predicted: a step takes 0.881297 s; bytes: ranks 0-3 4806672384\n"));
  CHECK(printed.text.str().find("makespan") != std::string::npos);
  // Two layers on each rank, in the order of the ranks.
  hd::Plan equal{.microbatches = 16};
  for (int r = 0; r < 6; ++r)
    equal.stages.push_back({.layers = {2 * r, 2 * r + 2}, .ranks = {hd::Rank{r}}, .samples = {4}});
  CHECK(simulated_step(plan, problem) < simulated_step(equal, problem));
}

TEST_CASE("Rhino divides a layer, and its plan becomes instructions") {
  hd::systems::TensorProgram layer{.name = "layer"};
  layer.dimensions = {{"b", 64}, {"i", 32}, {"o", 48}};
  layer.tensors = {{"x", {"b", "i"}, hd::systems::TensorRole::input},
                   {"w", {"i", "o"}, hd::systems::TensorRole::parameter},
                   {"y", {"b", "o"}, hd::systems::TensorRole::output}};
  layer.operations = {{hd::systems::OperationKind::matmul, {"x", "w"}, "y"}};
  const hd::test::Printed printed;

  const hd::Machine gpus =
      hd::Machine::uniform(4, {.name = "gpu"}, {.latency = 2e-6, .bandwidth = 50e9});
  const hd::systems::RhinoPlan divided =
      hd::systems::rhino(layer, gpus, {.level = 1, .flops = 1e13});
  std::cout << divided << '\n';
  const hd::systems::ShardedProgram instructions = hd::systems::sharded_program(layer, divided);

  check(layer, instructions);
  CHECK(printed.text.str().starts_with("1 stage, axes of 4 ranks, 1 microbatch: "));
  CHECK(divided.communication == 0);
}

}  // namespace test_planning_guide
