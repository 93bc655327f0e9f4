// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors

// simulate_periodic() against simulate() of all actions, for every schedule of the catalogue.

#include <algorithm>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include <catch2/catch_test_macros.hpp>

#include <heddle/core/random.hpp>
#include <heddle/machine.hpp>
#include <heddle/schedule.hpp>
#include <heddle/simulate.hpp>

#include "support/cases.hpp"
#include "support/complaint.hpp"
#include "support/coverage.hpp"

namespace test_periodic {

using namespace heddle;

namespace {

using schedule::NamedSchedule;
using schedule::PipelineShape;

auto orders_of(const NamedSchedule& entry, PipelineShape shape) {
  return [&entry, shape](int microbatches) mutable {
    shape.microbatches = microbatches;
    return entry.orders(shape);
  };
}

/// A time that is a whole multiple of 1/1024, so that no sum of the simulator is rounded.
double fraction(const Random& random, std::uint64_t& next, std::uint64_t most) {
  return static_cast<double>(1 + random.below(next++, most)) / 1024;
}

/// Random times of every stage and of fused pairs, and of the transfers between any two ranks.
TableCosts random_costs(const Random& random, std::uint64_t& next, int ranks, int stages,
                        bool alike) {
  const double latency = fraction(random, next, 3000);
  Machine machine = Machine::uniform(ranks, {}, {.latency = latency, .bandwidth = 1024});
  TableCosts costs(std::move(machine), stages);
  const double times[] = {fraction(random, next, 4000), fraction(random, next, 4000),
                          fraction(random, next, 4000)};
  for (int s = 0; s < stages; ++s) {
    const auto time = [&](std::size_t kind) {
      return alike ? times[kind] : fraction(random, next, 4000);
    };
    costs.at(Kind::forward, Stage{s}) = time(0);
    costs.at(Kind::backward_input, Stage{s}) = time(1);
    costs.at(Kind::backward_weight, Stage{s}) = time(2);
    costs.at(Kind::backward, Stage{s}) =
        costs.at(Kind::backward_input, Stage{s}) + costs.at(Kind::backward_weight, Stage{s});
    costs.at(Kind::update, Stage{s}) = fraction(random, next, 9000);
    costs.at(Kind::group, Stage{s}) = fraction(random, next, 9000);
  }
  return costs;
}

void require_equal(const PeriodicStep& step, const Orders& orders, const Timeline& timeline) {
  INFO(orders.name);
  REQUIRE(step.makespan == timeline.makespan());
  REQUIRE(step.busy == timeline.busy());
  REQUIRE(step.bubble_ratio() == timeline.bubble_ratio());
  std::int64_t entries = 0, messages = 0;
  for (const auto& list : orders.ranks) entries += static_cast<std::int64_t>(list.size());
  for (const Action& action : timeline.schedule().actions()) messages += action.kind == Kind::move;
  REQUIRE(step.orders == entries);
  REQUIRE(step.messages == messages);
}

}  // namespace

TEST_CASE("a step whose periods are skipped takes as long as the simulation of all actions") {
  const Random random(7, "periodic");
  std::uint64_t next = 0;
  test::Coverage coverage("steps");
  const std::uint64_t rounds = test::cases(6, 300);
  for (std::uint64_t round = 0; round < rounds; ++round)
    for (const NamedSchedule& entry : schedule::catalogue()) {
      PipelineShape shape;
      shape.ranks = 2 * static_cast<int>(1 + random.below(next++, 4));
      shape.stages_per_rank = static_cast<int>(1 + random.below(next++, 3));
      shape.microbatches = shape.ranks * static_cast<int>(2 + random.below(next++, 40));
      if (round == 0) shape = {.ranks = 8, .microbatches = 4096, .stages_per_rank = 2};
      Orders orders;
      try {
        orders = entry.orders(shape);
      } catch (const infeasible&) {
        continue;
      }
      int stages = 0;
      for (const auto& list : orders.ranks)
        for (const Order& order : list)
          stages = std::max(stages, static_cast<int>(+order.stage) + 1);
      const bool alike = random.below(next++, 3) == 0;
      const TableCosts costs = random_costs(random, next, shape.ranks, stages, alike);
      const StageSizes sizes = {.activation = 1 + random.below(next++, 2000)};
      const Timeline timeline = simulate(weave(orders, sizes), costs);
      const PeriodicStep step =
          simulate_periodic(orders_of(entry, shape), shape.microbatches, costs, sizes);
      require_equal(step, orders, timeline);
      for (int r = 0; r < shape.ranks; ++r)
        REQUIRE(static_cast<std::uint64_t>(step.live[static_cast<std::size_t>(r)]) ==
                schedule::peak(timeline, Rank{r}, role::saved).parts);
      const bool skipped = step.simulated < step.orders;
      REQUIRE(skipped == (step.period > 0));
      coverage.count("equal stages, skipped", alike && skipped);
      coverage.count("unequal stages, skipped", !alike && skipped);
      coverage.count("not skipped", !skipped);
      for (const char* name :
           {"1f1b", "gpipe", "interleaved", "looped-bfs", "zb-h1", "zb-h2", "zb-v", "dualpipe-v",
            "kfkb", "chimera", "chimera-doubled", "dualpipe", "pipedream", "pipedream-vertical"})
        coverage.count(name, entry.name == name && skipped);
    }
  CAPTURE(coverage);
  REQUIRE(coverage.rarer_than(1) == "");
}

TEST_CASE("a million microbatches have the closed forms of few") {
  constexpr int ranks = 64, microbatches = 1'000'000;
  const StageCosts costs = {.forward = 1, .backward_input = 1, .backward_weight = 1};
  const auto step_of = [&](std::string_view name) {
    return simulate_periodic(
        orders_of(schedule::find_schedule(name), {.ranks = ranks, .stages_per_rank = 2}),
        microbatches, costs);
  };
  for (const char* name : {"gpipe", "1f1b"}) {
    INFO(name);
    const PeriodicStep step = step_of(name);
    REQUIRE(step.makespan == 3.0 * (microbatches + ranks - 1));
    REQUIRE(step.busy == std::vector<Seconds>(ranks, 3.0 * microbatches));
    REQUIRE(step.orders == 2LL * ranks * microbatches);
    REQUIRE(step.messages == 2LL * (ranks - 1) * microbatches);
    REQUIRE(step.simulated * 100 < step.orders);
    REQUIRE(step.live[0] == (std::string_view(name) == "gpipe" ? microbatches : ranks));
    REQUIRE(step.period == 1);
  }
  REQUIRE(step_of("interleaved").makespan == 6.0 * microbatches + 3.0 * (ranks - 1));
  REQUIRE(step_of("zb-h1").makespan == 3.0 * microbatches + 1.0 * (ranks - 1));
  REQUIRE(step_of("pipedream").makespan == 3.0 * (microbatches + ranks - 1));
  REQUIRE(step_of("pipedream").orders == 3LL * ranks * microbatches);
  // Stages on two ranks, each of which has half of the microbatches.
  REQUIRE(step_of("dualpipe").makespan == 3.0 * microbatches + 1.0 * (ranks - 2));
  REQUIRE(step_of("dualpipe").period == 2);
  REQUIRE(step_of("chimera").period == ranks);
}

// Rank 0 begins its second round late and computes faster than its inputs arrive, so that after a
// while it waits for them: in the middle of what repeats, a maximum gets another winner.
TEST_CASE("periods are skipped no further than to the next winner of a maximum") {
  const auto two_rounds = [](int microbatches) {
    Orders orders{"two rounds of forwards", {{}, {}}, StageGraph::chain(4)};
    for (int stage = 0; stage < 4; ++stage)
      for (int m = 0; m < microbatches; ++m)
        orders.ranks[static_cast<std::size_t>(stage % 2)].push_back(
            {Kind::forward, Stage{stage}, Item{m}});
    return orders;
  };
  TableCosts costs(Machine::uniform(2, {}, {}), 4);
  const double times[] = {1, 3, 1, 1.0 / 1024};
  for (int s = 0; s < 4; ++s) costs.at(Kind::forward, Stage{s}) = times[s];
  for (const int microbatches : {300, 600}) {
    const PeriodicStep step = simulate_periodic(two_rounds, microbatches, costs);
    REQUIRE(step.makespan == simulate(weave(two_rounds(microbatches)), costs).makespan());
    REQUIRE(step.simulated < 100);
  }
}

TEST_CASE("a step without a period says why") {
  const StageCosts costs = {.forward = 1, .backward = 2};
  const auto scrambled = [](int microbatches) {
    Orders orders = schedule::gpipe(2, microbatches);
    const Random random(1, "scrambled");
    for (auto& list : orders.ranks)
      std::sort(list.begin(), list.begin() + microbatches, [&](const Order& a, const Order& b) {
        return random.bits(+a.item) < random.bits(+b.item);
      });
    return orders;
  };
  REQUIRE(test::message_of<infeasible>([&] {
            (void)simulate_periodic(scrambled, 1'000'000, costs);
          }).find("the orders have no period") != std::string::npos);
  const Orders few = scrambled(50);
  const PeriodicStep step = simulate_periodic(scrambled, 50, costs);
  REQUIRE(step.makespan == simulate(weave(few), costs).makespan());
}

}  // namespace test_periodic
