// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// planner_battery(): what every planner must hold on random small problems. gap_to_optimum(): how
/// far the best of several planners is from the best of all plans, by simulation.

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <optional>
#include <random>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>

#include <heddle/core/text.hpp>
#include <heddle/machine.hpp>
#include <heddle/plan/found_plan.hpp>
#include <heddle/plan/plan_problem.hpp>
#include <heddle/plan/profile.hpp>
#include <heddle/plan/solver/compositions.hpp>
#include <heddle/schedule/plan.hpp>

namespace heddle::test {

/// The numbers of a problem.
struct PlanCase {
  heddle::plan::Profile profile;
  std::vector<Device> devices;
  std::vector<Level> levels;
  plan::PlanOptions options;

  /// Returns the machine, with capacities and bandwidths of so many times the size.
  [[nodiscard]] Machine machine(double capacity = 1, double bandwidth = 1) const {
    std::vector<Device> ranks = devices;
    for (Device& device : ranks)
      for (Memory& level : device.memories)
        level.capacity =
            static_cast<Bytes>(std::ceil(static_cast<double>(level.capacity) * capacity));
    std::vector<Level> groups = levels;
    for (Level& level : groups) {
      level.link.bandwidth *= bandwidth;
      level.ports.in *= bandwidth;
      level.ports.out *= bandwidth;
    }
    return Machine::hierarchical(std::move(ranks), std::move(groups));
  }
};

/// Returns a random problem: up to so many layers and ranks of two kinds in up to two nodes, and 8
/// samples. Every third has little memory.
[[nodiscard]] inline PlanCase random_plan_case(std::uint64_t seed, int most_layers = 6,
                                               int most_ranks = 4) {
  std::mt19937_64 random(seed);
  const auto draw = [&](int least, int most) {
    return least + static_cast<int>(random() % static_cast<unsigned>(most - least + 1));
  };
  PlanCase one;
  const int layers = draw(1, most_layers);
  const int ranks = draw(1, most_ranks);
  const bool two_kinds = draw(0, 1) == 1;
  one.options.batch = std::vector{1, 2, 4, 6, 8, 8}[static_cast<std::size_t>(draw(0, 5))];
  if (draw(0, 2) == 0)  // one number of microbatches
    for (int m = draw(1, 8);; --m)
      if (one.options.batch % m == 0) {
        one.options.microbatches = {m};
        break;
      }
  one.profile.model = text("random ", seed);
  one.profile.input = static_cast<Bytes>(draw(1, 100));
  for (int l = 0; l < layers; ++l) {
    heddle::plan::ProfiledLayer layer{
        .name = text("layer ", l),
        .output = static_cast<Bytes>(draw(1, 100)),
        .saved = static_cast<Bytes>(draw(1, 100)),
        .delta = static_cast<Bytes>(draw(0, 20)),
        .parameters = static_cast<Bytes>(draw(0, 3) == 0 ? draw(0, 3000) : draw(0, 300))};
    const int fixed = draw(0, 1) * draw(0, 30), sample = draw(5, 40);  // of a forward, in us
    for (const char* kind : {"fast", "slow"}) {
      const double slower = kind[0] == 'f' ? 1 : 1 + 0.25 * draw(1, 6);
      for (const std::int64_t samples : {1, 4}) {
        const double forward = slower * 1e-6 * (fixed + sample * static_cast<double>(samples));
        layer.measured.push_back({.device = kind,
                                  .samples = samples,
                                  .times = {.forward = forward,
                                            .backward_input = forward,
                                            .backward_weight = 0.75 * forward,
                                            .update = 1e-6 * draw(0, 5)}});
      }
    }
    one.profile.layers.push_back(std::move(layer));
  }
  const bool tight = draw(0, 2) == 0;
  const Bytes capacity = tight ? static_cast<Bytes>(draw(100, 6000)) : 0;
  for (int r = 0; r < ranks; ++r)
    one.devices.push_back({.name = two_kinds && draw(0, 1) == 1 ? "slow" : "fast",
                           .memories = {{.name = "memory", .capacity = capacity}}});
  const auto link = [&](int least, int most) {
    return Link{.latency = 1e-6 * draw(0, 3), .bandwidth = 1e6 * draw(least, most)};
  };
  const int shape = draw(0, 2);
  if (shape == 0) {
    one.levels = {{.name = "machine", .ranks = most_ranks, .link = link(5, 100)}};
  } else {
    one.levels = {{.name = "node", .ranks = most_ranks / 2, .link = link(20, 200)},
                  {.name = "cluster", .ranks = most_ranks, .link = link(2, 50)}};
    if (shape == 2) one.levels[0].ports = {1e6 * draw(2, 50), 1e6 * draw(2, 50)};
  }
  return one;
}

/// Options of planner_battery().
struct PlannerBattery {
  std::uint64_t cases = 200;
  /// Whether the planner finds the least formula of all of its plans, so that a better machine is
  /// never slower.
  bool exact = true;
  /// Whether a better machine is never slower for a planner that is not compared with brute force.
  bool monotone = false;
  /// Part of the reason that the planner gives if none of its plans divides the ranks, whatever
  /// the memory. Empty: it has a plan for any ranks.
  std::string_view indivisible = {};
  /// The cases in which more bandwidth must not be slower. More memory must not in any case.
  std::uint64_t bandwidth_cases = std::numeric_limits<std::uint64_t>::max();
};

/// Checks a planner on random problems: its plan is valid, fits in memory and reports the price of
/// its own formula; the search is deterministic; no plan means that a rank lacks a number of bytes.
/// `least(problem)` is the least formula of all plans of the planner that fit, by brute force, or
/// nothing; it is compared to 1e-12 if the planner is exact.
template <plan::Planner P, class BruteForce>
void planner_battery(const P& planner, const BruteForce& least,
                     const PlannerBattery& battery = {}) {
  std::uint64_t feasible = 0;
  for (std::uint64_t seed = 0; seed < battery.cases; ++seed) {
    const PlanCase one = random_plan_case(seed);
    const Machine machine = one.machine();
    const plan::PlanProblem problem(one.profile, machine, one.options);
    const plan::FoundPlan found = planner.search(problem);
    const plan::FoundPlan again = planner.search(problem);
    INFO(P::name << ", case " << seed << "\n" << one.profile << "\n" << machine);
    REQUIRE(found.planner == P::name);
    REQUIRE(found.plan == again.plan);
    REQUIRE(found.formula == again.formula);
    REQUIRE(found.infeasible == again.infeasible);
    const std::optional<Seconds> expected = least(problem);
    if (!found.plan && !battery.indivisible.empty() &&
        found.infeasible.find(battery.indivisible) != std::string::npos) {
      const Machine roomy = one.machine(1e6);
      REQUIRE(planner.search(plan::PlanProblem(one.profile, roomy, one.options)).infeasible ==
              found.infeasible);
      REQUIRE_FALSE(expected.has_value());
      continue;
    }
    REQUIRE(found.candidates >= 1);
    if (!found.plan) {
      REQUIRE_THAT(found.infeasible, Catch::Matchers::ContainsSubstring("rank ") &&
                                         Catch::Matchers::ContainsSubstring(" bytes"));
      REQUIRE_FALSE(expected.has_value());
      continue;
    }
    ++feasible;
    INFO(*found.plan);
    check(*found.plan, problem.layers(), machine.ranks());
    REQUIRE(found.plan->batch() == one.options.batch);
    REQUIRE(found.plan->schedule == one.options.schedule);
    REQUIRE(std::ranges::count(problem.options().microbatches, found.plan->microbatches) == 1);
    REQUIRE_FALSE(plan::memory_shortage(*found.plan, problem).has_value());
    REQUIRE(found.formula == planner.formula(*found.plan, problem));
    REQUIRE(found.infeasible.empty());
    if (!battery.exact && !battery.monotone) continue;
    if (battery.exact) REQUIRE(expected.has_value());
    if (battery.exact && !(std::abs(found.formula - *expected) <= 1e-12 * *expected))
      FAIL("found " << found.formula << " s, by brute force " << *expected << " s");
    for (const auto& [capacity, bandwidth] : {std::pair{2.0, 1.0}, {1.0, 2.0}, {1.0, 16.0}}) {
      if (bandwidth > 1 && seed >= battery.bandwidth_cases) continue;
      const Machine better = one.machine(capacity, bandwidth);
      const plan::FoundPlan faster =
          planner.search(plan::PlanProblem(one.profile, better, one.options));
      INFO(capacity << " times the memory, " << bandwidth << " times the bandwidth: "
                    << faster.formula << " s after " << found.formula << " s");
      REQUIRE(faster.plan.has_value());
      REQUIRE(faster.formula <= found.formula * (1 + 1e-12));
    }
  }
  CHECK(feasible >= battery.cases / 2);
  CHECK((battery.cases < 50 || feasible < battery.cases));  // some have too little memory
}

/// Calls `visit(owners)` for all ways to give ranks to stages 0 to stages - 1, at least one to
/// each. Element r of `owners` is the stage of rank r, or -1 for none.
template <class Visit>
void for_each_assignment(int ranks, int stages, Visit&& visit) {
  std::vector<int> owners(static_cast<std::size_t>(ranks), -1);
  while (true) {
    int used = 0;
    for (int s = 0; s < stages; ++s) used += std::ranges::count(owners, s) > 0;
    if (used == stages) visit(std::span<const int>(owners));
    std::size_t r = 0;
    while (r < owners.size() && owners[r] == stages - 1) owners[r++] = -1;
    if (r == owners.size()) return;
    ++owners[r];
  }
}

/// A plan and its simulated time.
struct SimulatedPlan {
  Plan plan;
  Seconds time = 0;
};

/// Returns the plan of the least simulated_step() of all that fit in memory: any consecutive layers
/// on any ranks, with any samples for each rank. Only for small problems. Plans whose slowest stage
/// alone takes too long are not simulated.
[[nodiscard]] inline std::optional<SimulatedPlan> simulated_optimum(
    const plan::PlanProblem& problem) {
  std::optional<SimulatedPlan> best;
  const int ranks = problem.machine().ranks();
  const auto work = [&](LayerRange layers, Rank rank, std::int64_t samples) {
    const heddle::plan::LayerTimes times = problem.profile().times(
        layers, problem.machine().device(rank), 1, static_cast<double>(samples));
    return times.forward + times.backward();
  };
  for (const int microbatches : problem.options().microbatches)
    for (int stages = 1; stages <= std::min(ranks, problem.layers()); ++stages)
      for_each_assignment(ranks, stages, [&](std::span<const int> owners) {
        plan::for_each_composition(problem.layers(), stages, [&](std::span<const int> sizes) {
          Plan plan{
              .stages = {}, .microbatches = microbatches, .schedule = problem.options().schedule};
          const auto samples = static_cast<int>(problem.options().batch / microbatches);
          // Stage by stage: the shares of its ranks, then the next one.
          const auto extend = [&](const auto& self, int first) -> void {
            const int s = static_cast<int>(plan.stages.size());
            if (s == stages) {
              if (memory_shortage(plan, problem)) return;
              const Seconds time = simulated_step(plan, problem);
              if (!best || time < best->time) best = SimulatedPlan{plan, time};
              return;
            }
            PlanStage stage;
            stage.layers = {first, first + sizes[static_cast<std::size_t>(s)]};
            for (int r = 0; r < ranks; ++r)
              if (owners[static_cast<std::size_t>(r)] == s) stage.ranks.push_back(Rank{r});
            plan::for_each_composition(
                samples, static_cast<int>(stage.ranks.size()), [&](std::span<const int> shares) {
                  for (std::size_t i = 0; i < shares.size(); ++i)
                    if (best &&
                        microbatches * work(stage.layers, stage.ranks[i], shares[i]) >= best->time)
                      return;
                  stage.samples.assign(shares.begin(), shares.end());
                  plan.stages.push_back(stage);
                  self(self, stage.layers.last);
                  plan.stages.pop_back();
                });
          };
          extend(extend, 0);
        });
      });
  return best;
}

/// How far the best plan of several planners is from the best of all plans, by simulation.
struct OptimumGap {
  std::uint64_t cases = 0;       ///< that have a plan
  std::uint64_t within = 0;      ///< of these: at most 1.05 of the optimum
  double worst = 1;              ///< the largest ratio
  std::uint64_t worst_seed = 0;  ///< its case
};

/// Returns the gap over random problems. `accept(case)` selects problems.
template <class Accept, plan::Planner... P>
[[nodiscard]] OptimumGap gap_to_optimum(std::uint64_t cases, const Accept& accept,
                                        const P&... planners) {
  OptimumGap gap;
  for (std::uint64_t seed = 0; seed < cases; ++seed) {
    const PlanCase one = random_plan_case(seed);
    if (!accept(one)) continue;
    const Machine machine = one.machine();
    const plan::PlanProblem problem(one.profile, machine, one.options);
    const std::optional<SimulatedPlan> optimum = simulated_optimum(problem);
    if (!optimum) continue;
    Seconds best = std::numeric_limits<Seconds>::infinity();
    const auto price = [&](const auto& planner) {
      const plan::FoundPlan found = planner.search(problem);
      if (found.plan) best = std::min(best, plan::simulated_step(*found.plan, problem));
    };
    (price(planners), ...);
    ++gap.cases;
    gap.within += best <= 1.05 * optimum->time;
    if (best / optimum->time > gap.worst) {
      gap.worst = best / optimum->time;
      gap.worst_seed = seed;
    }
  }
  return gap;
}

}  // namespace heddle::test
