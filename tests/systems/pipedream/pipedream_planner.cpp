// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors

// PipeDream's planner against all plans that are divided level by level, and its formula by hand.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <iterator>
#include <optional>
#include <set>
#include <span>
#include <utility>
#include <vector>

#include <catch2/catch_approx.hpp>
#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>

#include <heddle/machine.hpp>
#include <heddle/plan/solver/compositions.hpp>
#include <heddle/systems/pipedream/pipedream.hpp>

#include "plan/planner_battery.hpp"
#include "support/cases.hpp"

namespace test_pipedream_planner {

using namespace heddle;
using Catch::Approx;
using Catch::Matchers::ContainsSubstring;

namespace {

using Offsets = std::set<std::size_t>;

/// Whether stages divide a group of a level as PipeDream does: `stages` are the ranks of each,
/// counted from the first one of the group, and `sizes` the ranks in groups of the levels below.
bool level_by_level(const std::vector<Offsets>& stages, std::span<const std::size_t> sizes) {
  if (sizes.empty()) return stages.size() == 1 && stages[0] == Offsets{0};
  const std::size_t below = sizes.back();
  const auto groups = [&](const Offsets& ranks) {
    Offsets found;
    for (const std::size_t rank : ranks) found.insert(rank / below);
    return found;
  };
  std::size_t next = 0;  // the first group that is not used yet
  for (std::size_t s = 0; s < stages.size();) {
    const Offsets part = groups(stages[s]);
    std::vector<Offsets> inside;
    for (; s < stages.size() && groups(stages[s]) == part; ++s) {
      std::optional<Offsets> alike;
      for (const std::size_t group : part) {
        Offsets own;
        for (const std::size_t rank : stages[s])
          if (rank / below == group) own.insert(rank - group * below);
        if (alike && *alike != own) return false;
        alike = own;
      }
      inside.push_back(*alike);
    }
    for (const std::size_t group : part)
      if (group != next++) return false;
    if (!level_by_level(inside, sizes.first(sizes.size() - 1))) return false;
  }
  return true;
}

/// The least formula of all plans of PipeDream that fit.
std::optional<Seconds> least(const plan::PlanProblem& problem) {
  std::optional<Seconds> best;
  const int ranks = problem.machine().ranks();
  std::vector<std::size_t> sizes{1};
  for (const Level& level : problem.machine().levels())
    sizes.push_back(static_cast<std::size_t>(level.ranks));
  sizes.pop_back();  // of the whole machine
  for (const int microbatches : problem.options().microbatches)
    for (int stages = 1; stages <= std::min(ranks, problem.layers()); ++stages)
      test::for_each_assignment(ranks, stages, [&](std::span<const int> owners) {
        std::vector<Offsets> offsets(static_cast<std::size_t>(stages));
        for (std::size_t r = 0; r < owners.size(); ++r)
          if (owners[r] >= 0) offsets[static_cast<std::size_t>(owners[r])].insert(r);
        if (!level_by_level(offsets, sizes)) return;
        const auto workers = std::ranges::count_if(owners, [](int owner) { return owner >= 0; });
        const auto inputs = static_cast<std::ptrdiff_t>(offsets[0].size());
        if (microbatches * inputs < workers) return;  // the pipeline is never full
        const std::int64_t samples = problem.options().batch / microbatches;
        for (const Offsets& stage : offsets)
          if (static_cast<std::int64_t>(stage.size()) > samples) return;
        plan::for_each_composition(problem.layers(), stages, [&](std::span<const int> counts) {
          Plan plan{.stages = {}, .microbatches = microbatches};
          int first = 0;
          for (std::size_t s = 0; s < offsets.size(); ++s) {
            PlanStage& stage = plan.stages.emplace_back();
            stage.layers = {first, first + counts[s]};
            first = stage.layers.last;
            std::int64_t left = samples;
            auto sharers = static_cast<std::int64_t>(offsets[s].size());
            for (const std::size_t rank : offsets[s]) {
              stage.ranks.push_back(Rank{rank});
              const std::int64_t share = (left + sharers - 1) / sharers;
              stage.samples.push_back(share);
              left -= share;
              --sharers;
            }
          }
          const Seconds price = systems::PipeDream{}.formula(plan, problem);
          if ((!best || price < *best) && !plan::memory_shortage(plan, problem)) best = price;
        });
      });
  return best;
}

}  // namespace

TEST_CASE("PipeDream's planner finds the best of its plans") {
  test::planner_battery(systems::PipeDream{}, least, {.cases = test::cases(200, 20'000)});
}

TEST_CASE("PipeDream's formula has the terms of the published optimiser") {
  // Two nodes of two ranks: 100 B/s inside, 10 B/s between. F + B of a sample: 3 s for each layer.
  plan::Profile profile{.model = "four layers", .input = 7};
  for (const Bytes weights : {80u, 160u, 240u, 320u})
    profile.layers.push_back(
        {.name = "layer",
         .output = 50,
         .parameters = weights,
         .measured = {{.device = "gpu",
                       .times = {.forward = 1, .backward_input = 1, .backward_weight = 1}}}});
  const Machine machine = Machine::hierarchical(std::vector<Device>(4, {.name = "gpu"}),
                                                {{.name = "node", .ranks = 2, .link = {0, 100}},
                                                 {.name = "cluster", .ranks = 4, .link = {0, 10}}});
  const plan::PlanProblem problem(profile, machine, {.batch = 32, .microbatches = {8}});
  const auto price = [&](std::vector<PlanStage> stages) {
    return systems::PipeDream{}.formula({.stages = std::move(stages), .microbatches = 8}, problem);
  };
  const std::vector<Rank> all{Rank{0}, Rank{1}, Rank{2}, Rank{3}};
  const auto stage = [](LayerRange layers, std::vector<Rank> ranks) {
    PlanStage one;
    one.layers = layers;
    one.samples.assign(ranks.size(), 4 / static_cast<std::int64_t>(ranks.size()));
    one.ranks = std::move(ranks);
    return one;
  };
  // Data parallelism: 4 layers of a sample, sums inside nodes of m = 2, R = 2, and between nodes.
  CHECK(price({stage({0, 4}, all)}) ==
        Approx(8 * (12 + 4.0 * 800 / (100 * 2) / 4 + 4.0 * 800 / (10 * 2 * 2) / 2)));
  // Two nodes that are two stages: no sums between them, but messages of 4 samples, both ways.
  const double second = 2 * 2 * 3 + 4.0 * 560 / (100 * 2) / 2;
  const double message = 2.0 * 50 * 4 / 10;
  CHECK(price({stage({0, 2}, {Rank{0}, Rank{1}}), stage({2, 4}, {Rank{2}, Rank{3}})}) ==
        Approx(8 * std::max(second, message)));
  // A pipeline inside each node: the sums between nodes are of all weights, and messages inside are
  // those of half of the samples.
  CHECK(price({stage({0, 2}, {Rank{0}, Rank{2}}), stage({2, 4}, {Rank{1}, Rank{3}})}) ==
        Approx(8 * (std::max(12.0, 2.0 * 50 * 2 / 100) + 4.0 * 800 / (10 * 2 * 2) / 2)));
}

TEST_CASE("PipeDream's pipeline has as many microbatches as it keeps in flight") {
  for (std::uint64_t seed = 0; seed < test::cases(100, 5000); ++seed) {
    const test::PlanCase random = test::random_plan_case(seed);
    const Machine machine = random.machine();
    const auto found = systems::PipeDream{}.search({random.profile, machine, random.options});
    if (!found.plan) continue;
    std::size_t workers = 0;
    for (const PlanStage& stage : found.plan->stages) workers += stage.ranks.size();
    CHECK(static_cast<std::size_t>(found.plan->microbatches) * found.plan->stages[0].ranks.size() >=
          workers);
  }
}

TEST_CASE("sites of unequal size are levels, too") {
  // A site of one rank and a site of three, two of which are a node.
  const Machine near = Machine::uniform(1, {.name = "fast"}, {});
  const Machine far = Machine::hierarchical(std::vector<Device>(3, {.name = "fast"}),
                                            {{.name = "node", .ranks = 2, .link = {0, 1e8}},
                                             {.name = "site", .ranks = 4, .link = {0, 1e8}}});
  const Machine machine = join({near, far}, {0, 1e7});
  const test::PlanCase one = test::random_plan_case(12);
  for (const std::int64_t batch : {4, 24}) {
    const plan::PlanProblem problem(one.profile, machine, {.batch = batch});
    const auto found = systems::PipeDream{}.search(problem);
    REQUIRE(found.plan.has_value());
    check(*found.plan, problem.layers(), 4);
    CHECK(found.formula == systems::PipeDream{}.formula(*found.plan, problem));
    // Three ranks of the far site cannot be alike inside of the near one.
    for (const PlanStage& stage : found.plan->stages)
      CHECK((+stage.ranks.front() != 0 || stage.ranks.size() <= 2));
  }
}

}  // namespace test_pipedream_planner
