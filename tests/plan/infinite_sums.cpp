// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors

// Finite costs whose sums or products are infinite are rejected at the doors of planning, with a
// sentence of the function that was called.

#include <functional>
#include <limits>
#include <string>
#include <string_view>
#include <vector>

#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>

#include <heddle/core/error.hpp>
#include <heddle/machine.hpp>
#include <heddle/plan.hpp>
#include <heddle/schedule.hpp>
#include <heddle/simulate.hpp>
#include <heddle/systems/dsp/switches.hpp>
#include <heddle/systems/flexsp/plan_sequence_groups.hpp>
#include <heddle/systems/flexsp/sequence_costs.hpp>
#include <heddle/systems/hap/axis_costs.hpp>
#include <heddle/systems/hap/hap.hpp>
#include <heddle/systems/hap/program.hpp>
#include <heddle/systems/planners.hpp>
#include <heddle/systems/race_prediction/race_prediction.hpp>
#include <heddle/systems/rhino/rhino.hpp>
#include <heddle/systems/rhino/strategy_graph.hpp>

#include "support/complaint.hpp"

namespace test_infinite_sums {

using namespace heddle;
using Catch::Matchers::ContainsSubstring;
using heddle::test::message_of;

namespace {

constexpr double huge = 1e300;

plan::Profile profile_of(Seconds time, Bytes bytes = 8) {
  const plan::LayerTimes times = {time, time, time, 0};
  const plan::ProfiledLayer layer{.name = "block",
                                  .output = bytes,
                                  .saved = bytes,
                                  .parameters = bytes,
                                  .measured = {{"gpu", 1, 1, times}}};
  return {.model = "huge", .input = bytes, .layers = {layer, layer}, .reference = "gpu"};
}
Machine two_ranks(Link link = {1e-6, 1e9}, double speed = 1) {
  return Machine::uniform(2, {.name = speed == 1 ? "gpu" : "other", .speed = speed}, link);
}
systems::TensorProgram product() {
  systems::TensorProgram program{.name = "product"};
  program.dimensions = {{"b", 64}, {"i", 32}, {"o", 48}};
  program.tensors = {{"x", {"b", "i"}, systems::TensorRole::input},
                     {"w", {"i", "o"}, systems::TensorRole::parameter},
                     {"y", {"b", "o"}, systems::TensorRole::output}};
  program.operations = {{systems::OperationKind::matmul, {"x", "w"}, "y"}};
  return program;
}

}  // namespace

TEST_CASE("finite costs that add up to infinity are rejected by the function that was called") {
  const double tiny = std::numeric_limits<double>::min();
  const struct {
    const char* error;
    std::function<void()> call;
  } doors[] = {
      {"heddle::systems::plan_sequence_groups: the costs add up to more than their type can hold "
       "(degree 1, 100005 tokens)",
       [] {
         (void)systems::plan_sequence_groups(
             {100000, 5}, {.ranks = 1, .tokens_per_rank = 200000, .degrees = {{1, 0, 0, huge}}});
       }},
      {"heddle::systems::plan_sequence_groups: the costs add up",
       [] {
         (void)systems::plan_sequence_groups(
             {1'000'000'000, 5},
             {.ranks = 2, .tokens_per_rank = 2'000'000'000, .degrees = {{1, 0, huge, 0}}});
       }},
      {"heddle::plan::PlanProblem: the costs add up to more than their type can hold (layer 0 "
       "('block')",
       [] {
         (void)plan::search(profile_of(huge), two_ranks(), {.batch = 100'000'000},
                            systems::planners());
       }},
      {"of speed 1e-300",
       [] {
         (void)plan::search(profile_of(1), two_ranks({}, 1e-300), {.batch = 100'000'000},
                            systems::planners());
       }},
      {"heddle::plan::PlanProblem: the costs add up to more than their type can hold (messages",
       [=] {
         (void)plan::search(profile_of(1, 1'000'000), two_ranks({0, tiny}), {.batch = 1'000},
                            systems::planners());
       }},
      {"heddle::plan::PlanProblem: the costs add up to more than their type can hold (messages",
       [] {
         (void)plan::search(profile_of(1), two_ranks({1e308, 1e9}), {.batch = 4},
                            systems::planners());
       }},
      {"heddle::plan::PlanProblem: the layers and samples add up to more than 2^62 bytes",
       [] {
         (void)plan::search(profile_of(1, Bytes{1} << 60), two_ranks(), {.batch = 1024},
                            systems::planners());
       }},
      {"heddle::plan::PlanProblem: the costs add up",
       [] {
         (void)plan::PlanChoice(profile_of(huge), two_ranks(),
                                {.search = {.batch = 100'000'000, .microbatches = {1}},
                                 .planners = systems::planners()});
       }},
      {"heddle::systems::hap: the costs add up",
       [=] { (void)systems::hap(product(), two_ranks(), {.flops = tiny}); }},
      {"heddle::systems::rhino: the costs add up",
       [=] { (void)systems::rhino(product(), two_ranks(), {.flops = tiny}); }},
      {"heddle::systems::axis_costs: the costs add up",
       [=] {
         (void)systems::axis_costs(two_ranks({0, tiny / 4096}), {{0, 1}});
       }},
      {"the costs add up to more than their type can hold (3 stages, and a switch that costs "
       "1e+308",
       [] {
         (void)systems::plan_switches({1, 2}, {1, 2, 1}, {.costs = {0, 1e308, 1e308, 0}});
       }},
      {"heddle::systems::choose_strategies: the costs add up",
       [] {
         systems::StrategyGraph graph;
         graph.nodes = {{.name = "a", .costs = {1e308}}, {.name = "b", .costs = {1e308}}};
         (void)systems::choose_strategies(graph, {});
       }},
      {"heddle::systems::fit_degree_cost: a sample's time is too short for its tokens",
       [=] {
         const systems::DegreeSample sample{{1000}, tiny};
         (void)systems::fit_degree_cost(1, std::vector(3, sample));
       }},
      {"heddle::systems::flexsp_costs: the costs add up",
       [=] {
         systems::FlexSpModel model = systems::flexsp_7b;
         (void)systems::flexsp_costs(model, 2, 200, std::vector{tiny / 4096});
       }},
      {"the mean is more than a double can hold",
       [] {
         const systems::EmpiricalTimes runs({1e-300, 1e300});
         (void)systems::LognormalTimes::fit(runs).mean_of_least(1);
       }},
      {"heddle::simulate: the costs add up to more than their type can hold",
       [] {
         const Schedule schedule = weave(schedule::gpipe(2, 4));
         (void)simulate(schedule, {.forward = 5e307, .backward = 5e307});
       }},
      {"heddle::simulate: the costs add up to more than their type can hold",
       [] {  // by events, because ports are shared
         const Schedule schedule = weave(schedule::gpipe(2, 4));
         const Machine machine = Machine::hierarchical(
             {{.name = "gpu"}, {.name = "gpu"}},
             {{.name = "rank", .ranks = 1, .ports = {1e9, 1e9}}, {.name = "all", .ranks = 2}});
         (void)simulate(schedule, {.forward = 5e307, .backward = 5e307}, machine);
       }},
      {"heddle::simulate: the costs add up to more than their type can hold",
       [] {
         (void)plan::place_weights(schedule::zb_h1(2, 4),
                                   {.forward = 5e307, .backward_input = 5e307});
       }},
  };
  for (const auto& [error, call] : doors) {
    INFO(error);
    const std::string message = message_of<contract_error>(call);
    CHECK_THAT(message, ContainsSubstring(error));
    // Only the costs of a schedule have a unit that the user chooses.
    CHECK((message.find("greater unit of time") != std::string::npos) ==
          std::string_view(error).starts_with("heddle::simulate"));
  }
}

TEST_CASE("great costs that add up to a number are planned") {
  const systems::SequencePlan groups = systems::plan_sequence_groups(
      {100000, 5}, {.ranks = 1, .tokens_per_rank = 200000, .degrees = {{1, 0, 0, 1e290}}});
  CHECK(groups.time >= 1e300);
  CHECK_NOTHROW(
      (void)plan::search(profile_of(1e280), two_ranks(), {.batch = 8}, systems::planners()).best());
}

}  // namespace test_infinite_sums
