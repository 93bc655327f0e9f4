// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors

// DAPPLE's planner against all of its plans, and its formula against a walk through the step.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <set>
#include <span>
#include <vector>

#include <catch2/catch_approx.hpp>
#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>

#include <heddle/plan/solver/compositions.hpp>
#include <heddle/schedule.hpp>
#include <heddle/simulate.hpp>
#include <heddle/systems/dapple/dapple.hpp>

#include "plan/planner_battery.hpp"
#include "support/cases.hpp"
#include "support/complaint.hpp"

namespace test_dapple_planner {

using namespace heddle;
using Catch::Approx;
using Catch::Matchers::ContainsSubstring;

namespace {

using Ranks = std::vector<Rank>;

/// The nodes of a machine of planner_battery.hpp.
std::vector<Ranks> nodes_of(const Machine& machine) {
  std::vector<Ranks> nodes;
  const int size = machine.levels().front().ranks;
  for (int r = 0; r < machine.ranks(); ++r) {
    if (r % size == 0) nodes.emplace_back();
    nodes.back().push_back(Rank{r});
  }
  return nodes;
}

/// The sets of `need` ranks that the three policies take while `used` ranks are used.
std::set<Ranks> policies(const std::vector<Ranks>& nodes, const std::set<Rank>& used,
                         std::size_t need) {
  std::vector<Ranks> fresh, begun, all;
  for (const Ranks& node : nodes) {
    Ranks left;
    for (const Rank rank : node)
      if (!used.contains(rank)) left.push_back(rank);
    (left.size() == node.size() ? fresh : begun).push_back(left);
    all.push_back(left);
  }
  std::set<Ranks> found;
  const auto take = [&](Ranks in_order) {
    if (in_order.size() < need) return;
    in_order.resize(need);
    std::ranges::sort(in_order);
    found.insert(in_order);
  };
  for (const bool fresh_first : {true, false}) {
    Ranks line;
    for (const auto* part : {fresh_first ? &fresh : &begun, fresh_first ? &begun : &fresh})
      for (const Ranks& node : *part) line.insert(line.end(), node.begin(), node.end());
    take(line);
  }
  Ranks turns;
  for (std::size_t i = 0; i < 8; ++i)
    for (const Ranks& left : all)
      if (i < left.size()) turns.push_back(left[i]);
  take(turns);
  return found;
}

/// The least formula of all plans of DAPPLE that fit.
std::optional<Seconds> least(const plan::PlanProblem& problem) {
  std::optional<Seconds> best;
  const std::vector<Ranks> nodes = nodes_of(problem.machine());
  const auto ranks = static_cast<std::size_t>(problem.machine().ranks());
  for (const int microbatches : problem.options().microbatches) {
    const auto samples = static_cast<std::size_t>(problem.options().batch / microbatches);
    for (int stages = 1; stages <= problem.layers(); ++stages)
      plan::for_each_composition(problem.layers(), stages, [&](std::span<const int> sizes) {
        Plan plan{.stages = {}, .microbatches = microbatches};
        const auto extend = [&](const auto& self, int first, const std::set<Rank>& used) -> void {
          const std::size_t s = plan.stages.size();
          if (s == sizes.size()) {
            const Seconds price = systems::Dapple{}.formula(plan, problem);
            if ((!best || price < *best) && !plan::memory_shortage(plan, problem)) best = price;
            return;
          }
          for (std::size_t need = 1; need <= std::min(ranks - used.size(), samples); ++need)
            for (const Ranks& taken : policies(nodes, used, need)) {
              PlanStage stage;
              stage.layers = {first, first + sizes[s]};
              stage.ranks = taken;
              for (std::size_t r = 0; r < need; ++r)
                stage.samples.push_back(static_cast<std::int64_t>((samples + need - 1 - r) / need));
              plan.stages.push_back(stage);
              std::set<Rank> then = used;
              then.insert(taken.begin(), taken.end());
              self(self, stage.layers.last, then);
              plan.stages.pop_back();
            }
        };
        extend(extend, 0, {});
      });
  }
  return best;
}

}  // namespace

TEST_CASE("DAPPLE's planner finds the best of its plans") {
  // Beyond these cases there are some in which the formula itself is slower: see the next test.
  test::planner_battery(systems::Dapple{}, least,
                        {.cases = test::cases(200, 20'000), .bandwidth_cases = 200});
}

TEST_CASE("the pivot formula may be slower for a faster network") {
  // Two stages of F = B = 4 and a transfer between them, M = 2. If the transfer is just the pivot,
  // its formula forgets that the last stage is behind it. A faster transfer makes the last stage
  // the pivot, and the formula has all stages again.
  const auto latency = [](Seconds transfer) {
    return systems::pivot_latency(
        std::vector<systems::LatencyStage>{{4, 4, 0}, {transfer, transfer, 0}, {4, 4, 0}}, 2);
  };
  CHECK(latency(4.25) == 4 + 4.25 + 8.5 + 8.25);
  CHECK(latency(4) == 12 + 8 + 12);
  CHECK(latency(4.25) < latency(4));
}

TEST_CASE("the pivot is the last stage, unless an earlier one outlasts what is between") {
  using Stages = std::vector<systems::LatencyStage>;
  // Keys (M - 1)(F + B) with M = 11: 10 times 3, 4, 3 and 2 of both.
  const Stages stages{{1, 2, 0}, {2, 2, 0}, {1, 2, 0}, {1, 1, 0}};
  CHECK(systems::pivot_stage(stages, 11) == 1);
  CHECK(systems::pivot_stage(stages, 1) == 3);
  CHECK(systems::pivot_stage(Stages{{1, 1, 0}}, 5) == 0);
  // With M = 2 stage 1 has 4 and stage 3 has 2. The 3 of stage 2 between them exceed the
  // difference, but stage 2 itself has 3 and nothing between.
  CHECK(systems::pivot_stage(stages, 2) == 1);
  CHECK(systems::pivot_stage(Stages{{2, 2, 0}, {1, 1, 0}, {1, 1, 0}, {1, 1, 0}}, 2) == 3);
  // L = 1 + 2 + 10 * 4 + max(0 + 2 + 2).
  CHECK(systems::pivot_latency(stages, 11) == 3 + 40 + 4);
  // A sum of gradients of 9 behind the first stage, one of 50 behind the last.
  CHECK(systems::pivot_latency(Stages{{1, 2, 9}, {2, 2, 0}, {1, 2, 0}, {1, 1, 0}}, 11) ==
        3 + 40 + 13);
  CHECK(systems::pivot_latency(Stages{{1, 2, 9}, {2, 2, 0}, {1, 2, 0}, {1, 1, 50}}, 11) ==
        3 + 40 + (50 - 2 - 2 - 1));
  for (const auto& run : {std::pair{Stages{}, 1}, {Stages{{1, 1, 0}}, 0}})
    CHECK_THAT(
        test::message_of<contract_error>(
            [&] { (void)systems::pivot_latency(run.first, run.second); }),
        ContainsSubstring("heddle::systems::pivot_latency") && ContainsSubstring("at least one"));
}

TEST_CASE("the pivot formula is exact if the last stage is the pivot and nothing waits for it") {
  // Equal stages without transfers: the step of 1F1B is (M + S - 1)(F + B).
  for (int stages = 1; stages <= 6; ++stages)
    for (const int microbatches : {1, 2, 7, 30}) {
      const std::vector<systems::LatencyStage> equal(static_cast<std::size_t>(stages), {1, 2, 0});
      const auto simulated =
          simulate(schedule::one_f_one_b({.ranks = stages, .microbatches = microbatches}),
                   {.forward = 1, .backward = 2})
              .makespan();
      CHECK(systems::pivot_latency(equal, microbatches) == Approx(simulated));
    }
}

TEST_CASE("a planner of whole layers says that it needs tensor degree 1") {
  plan::Profile profile{.model = "split", .layers = {{.name = "one"}}};
  profile.layers[0].measured = {{.device = "gpu", .tensor = 2, .times = {.forward = 1}}};
  const Machine machine = Machine::uniform(2, {.name = "gpu"}, {});
  const auto found = systems::Dapple{}.search({profile, machine, {.batch = 2}});
  CHECK_FALSE(found.plan);
  CHECK_THAT(found.infeasible, ContainsSubstring("tensor degree 1"));
}

}  // namespace test_dapple_planner
