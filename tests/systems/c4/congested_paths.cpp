// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors

// Plans of paths around congested spines against the optimum by brute force; the ports of cards;
// a congested spine that a Monitor finds in simulated steps, and a dead one that find_hang() finds.

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>

#include <heddle/core.hpp>
#include <heddle/plan.hpp>
#include <heddle/schedule.hpp>
#include <heddle/simulate.hpp>
#include <heddle/systems/c4/path_plan.hpp>

#include "support/cases.hpp"
#include "support/complaint.hpp"
#include "support/spine_optimum.hpp"

namespace test_congested_paths {

using namespace heddle;
using Catch::Matchers::ContainsSubstring;
using systems::Flow;
using systems::PathPlan;

namespace {

std::vector<Flow> random_flows(const Random& random, std::uint32_t leaves, std::size_t count) {
  std::vector<Flow> flows;
  for (std::size_t f = 0; f < count; ++f)
    flows.push_back({static_cast<std::uint32_t>(random.below(100 + 2 * f, leaves)),
                     static_cast<std::uint32_t>(random.below(101 + 2 * f, leaves))});
  return flows;
}

std::vector<std::uint32_t> copy(const PathPlan& plan) {
  return {plan.spines().begin(), plan.spines().end()};
}

std::vector<std::uint32_t> changes(const std::vector<std::uint32_t>& before, const PathPlan& plan) {
  std::vector<std::uint32_t> moved;
  for (std::uint32_t f = 0; f < before.size(); ++f)
    if (plan.spine(f) != before[f]) moved.push_back(f);
  return moved;
}

/// Prices messages between eight ranks, one a leaf; those over one spine take twice as long.
struct SpineCosts {
  using Time = Seconds;
  const PathPlan* plan = nullptr;  // null: as planned
  std::uint32_t spine = 0;
  Random random;

  [[nodiscard]] Seconds time(const Schedule&, ActionId) const { return 1; }
  [[nodiscard]] Transfer<Seconds> transfer(const Schedule& schedule, ActionId id) const {
    if (plan == nullptr) return {1, 0};
    const Queue& queue = schedule[schedule[id].queue];
    const double noise = std::max(0.1, 1 + 0.1 * random.normal(+id));
    const std::size_t flow = +queue.from * 7 + +queue.to - (queue.to > queue.from ? 1 : 0);
    return {plan->spine(flow) == spine ? 2 * noise : noise, 0};
  }
};

}  // namespace

TEST_CASE("around congested spines the busiest link takes the least time there is") {
  const std::uint64_t seeds = test::cases(150, 2000);
  std::size_t beyond = 0;
  for (std::uint64_t seed = 0; seed < seeds; ++seed) {
    const Random random(seed, "congested");
    const auto leaves = static_cast<std::uint32_t>(1 + random.below(0, 4));
    const auto spines = static_cast<std::uint32_t>(2 + random.below(1, 3));
    const std::vector<Flow> flows = random_flows(random, leaves, 1 + random.below(2, 12));
    PathPlan plan(flows, static_cast<int>(spines));
    std::vector<double> shares(spines, 1.0);
    for (std::uint64_t change = 0; change < 2; ++change) {
      const auto spine = static_cast<std::uint32_t>(random.below(10 + change, spines));
      shares[spine] = 0.05 * static_cast<double>(1 + random.below(20 + change, 19));
      const auto before = copy(plan);
      const auto moved = plan.congested(spine, shares[spine]);
      REQUIRE(moved == changes(before, plan));
      const double least = test::least_time(flows, shares);
      const double ours = test::time_of(flows, copy(plan), shares);
      INFO("seed " << seed << ": " << ours << " against " << least);
      REQUIRE(std::abs(plan.max_time() - ours) < 1e-12);
      REQUIRE(ours <= least + 1);  // one flow of a whole link
      beyond += ours > least * (1 + 1e-12) ? 1u : 0u;
    }
  }
  CHECK(beyond == 0);
}

TEST_CASE("a congested spine that dies or is restored leaves a plan that is as good as a new one") {
  const std::uint64_t seeds = test::cases(300, 3000);
  for (std::uint64_t seed = 0; seed < seeds; ++seed) {
    const Random random(seed, "restored");
    const auto leaves = static_cast<std::uint32_t>(1 + random.below(0, 6));
    const auto spines = static_cast<std::uint32_t>(3 + random.below(1, 3));
    const std::vector<Flow> flows = random_flows(random, leaves, 1 + random.below(2, 80));
    PathPlan plan(flows, static_cast<int>(spines));
    const std::uint32_t least = plan.max_load();
    (void)plan.congested(0, 0.3);
    (void)plan.congested(1, 0.6);
    (void)plan.lose(0);
    REQUIRE(plan.share(0) == 0);
    REQUIRE(std::ranges::count(plan.spines(), 0u) == 0);
    const auto before = copy(plan);
    const auto moved = plan.restore(0);
    REQUIRE(moved == changes(before, plan));
    (void)plan.restore(1);
    REQUIRE(plan.max_load() == least);
    REQUIRE(plan.max_time() == least);
  }
}

TEST_CASE("a restored spine gets its share of one leaf's flows and no others move") {
  for (std::uint32_t count = 1; count <= 40; ++count)
    for (std::uint32_t spines = 2; spines <= 6; ++spines) {
      PathPlan plan(std::vector<Flow>(count, Flow{0, 1}), static_cast<int>(spines));
      (void)plan.lose(0);
      std::vector<std::uint32_t> load(spines, 0);
      for (const std::uint32_t s : plan.spines()) ++load[s];
      const std::uint32_t cap = (count + spines - 1) / spines;
      std::size_t excess = 0;
      for (const std::uint32_t l : load) excess += l > cap ? l - cap : 0;
      REQUIRE(plan.restore(0).size() == excess);
      REQUIRE(plan.max_load() == cap);
    }
}

TEST_CASE("flows of a card use both of its ports alike, and the ports are on two leaves") {
  for (std::uint64_t seed = 0; seed < 200; ++seed) {
    const Random random(seed, "ports");
    const auto cards = static_cast<std::uint32_t>(1 + random.below(0, 6));
    const std::vector<Flow> flows = random_flows(random, cards, random.below(1, 60));
    std::vector<std::array<std::uint32_t, 2>> leaves;
    for (std::uint32_t c = 0; c < cards; ++c) leaves.push_back({c / 2 * 2, c / 2 * 2 + 1});
    const systems::PortFlows ports = systems::over_ports(flows, leaves);
    std::vector<std::uint32_t> load(4 * std::size_t{cards}, 0);
    std::vector<std::uint32_t> degree(2 * std::size_t{cards}, 0);
    for (std::size_t f = 0; f < flows.size(); ++f) {
      REQUIRE(ports.port[f] < 2);
      REQUIRE(ports.flows[f].from == leaves[flows[f].from][ports.port[f]]);
      REQUIRE(ports.flows[f].to == leaves[flows[f].to][ports.port[f]]);
      for (const std::size_t end : {std::size_t{flows[f].from}, std::size_t{cards} + flows[f].to}) {
        ++degree[end];
        ++load[2 * end + ports.port[f]];
      }
    }
    for (std::size_t i = 0; i < load.size(); ++i) REQUIRE(load[i] <= (degree[i / 2] + 1) / 2);
  }
  CHECK_THAT(test::message_of<contract_error>([] {
               (void)systems::over_ports({{0, 3}}, std::vector{std::array{0u, 1u}});
             }),
             ContainsSubstring("a flow names a card without leaves (card 3 of 1)"));
}

TEST_CASE("a monitor finds the congested spine, and the plan then avoids it") {
  const Schedule exchange = schedule::collective(
      schedule::Collective::all_to_all, schedule::Algorithm::direct, {.ranks = 8, .bytes = 512});
  std::vector<Flow> flows;
  std::vector<systems::FlowRanks> ends;
  for (std::uint32_t from = 0; from < 8; ++from)
    for (std::uint32_t to = 0; to < 8; ++to)
      if (from != to) {
        flows.push_back({from, to});
        ends.push_back({Rank{from}, Rank{to}});
      }
  const std::uint64_t seeds = test::cases(200, 2000);
  std::uint64_t good = 0;
  for (std::uint64_t seed = 0; seed < seeds; ++seed) {
    PathPlan plan(flows, 4);
    const auto slow = static_cast<std::uint32_t>(seed % 5);  // 4: none
    Monitor monitor(8);
    for (std::uint64_t step = 0; step < 5; ++step) {
      const SpineCosts seen{&plan, slow, Random(10 * seed + step, "spines")};
      monitor.observe(simulate(exchange, seen),
                      simulate(exchange, SpineCosts{nullptr, 0, Random(0, "")}));
    }
    const std::vector<double> shares = systems::spine_shares(plan, monitor, ends);
    bool right = true;
    for (std::uint32_t s = 0; s < 4; ++s)
      right = right && (s == slow ? std::abs(shares[s] - 0.5) < 0.1 : shares[s] == 1);
    good += right ? 1u : 0u;
    if (!right || slow == 4) continue;
    const double before = test::time_of(flows, copy(plan), shares);
    (void)plan.congested(slow, shares[slow]);
    REQUIRE(plan.max_time() <= 2 / shares[slow]);
    REQUIRE(plan.max_time() <= before);
  }
  INFO(good << " of " << seeds);
  CHECK(100 * good >= 99 * seeds);
}

TEST_CASE("a message that does not arrive names its dead spine, and the plan then avoids it") {
  const Schedule exchange = schedule::collective(
      schedule::Collective::all_to_all, schedule::Algorithm::direct, {.ranks = 8, .bytes = 512});
  std::vector<Flow> flows;
  std::vector<systems::FlowRanks> ends;
  for (std::uint32_t from = 0; from < 8; ++from)
    for (std::uint32_t to = 0; to < 8; ++to)
      if (from != to) {
        flows.push_back({from, to});
        ends.push_back({Rank{from}, Rank{to}});
      }
  for (std::uint32_t dead = 0; dead < 4; ++dead) {
    PathPlan plan(flows, 4);
    const std::uint32_t least = PathPlan(flows, 3).max_load();
    // All ranks have posted all messages. Those over the dead spine arrive nowhere.
    const auto all = static_cast<std::uint32_t>(exchange.size());
    std::vector<ListPlace> places(8, {.started = all, .finished = all});
    for (std::uint32_t i = all; i-- > 0;) {
      const Queue& queue = exchange[exchange[ActionId{i}].queue];
      if (queue.local()) continue;
      const std::size_t flow = +queue.from * 7 + +queue.to - (queue.to > queue.from ? 1 : 0);
      if (plan.spine(flow) == dead) places[+queue.to].finished = i;
    }
    const std::vector<Finding> hangs = schedule::find_hang(exchange, places);
    REQUIRE(hangs.size() == 1);
    std::vector<double> expected(4, 1);
    expected[dead] = 0;
    REQUIRE(systems::spine_shares(plan, Monitor(8), ends, hangs) == expected);
    (void)plan.lose(dead);
    REQUIRE(std::ranges::count(plan.spines(), dead) == 0);
    REQUIRE(plan.max_load() == least);
    // A rank that is silent says nothing about paths.
    places[3].answered = false;
    REQUIRE(systems::spine_shares(plan, Monitor(8), ends, schedule::find_hang(exchange, places)) ==
            std::vector<double>(4, 1));
  }
}

TEST_CASE("spines that cannot be congested or restored are refused") {
  PathPlan plan({{0, 1}}, 2);
  CHECK_THAT(test::message_of<contract_error>([&] { (void)plan.congested(2, 0.5); }),
             ContainsSubstring("no such live spine (spine 2 of 2)"));
  CHECK_THAT(test::message_of<contract_error>([&] { (void)plan.congested(0, 0); }),
             ContainsSubstring("must be in (0, 1] (share 0)"));
  CHECK_THAT(test::message_of<contract_error>([&] { (void)plan.congested(0, std::nan("")); }),
             ContainsSubstring("must be in (0, 1]"));
  CHECK_THAT(test::message_of<contract_error>([&] { (void)plan.restore(2); }),
             ContainsSubstring("no such spine (spine 2 of 2)"));
  CHECK_THAT(
      test::message_of<contract_error>([&] { (void)systems::spine_shares(plan, Monitor(2), {}); }),
      ContainsSubstring("the flows with ranks are not those of the plan"));
  CHECK(plan.max_time() == 1);
}

}  // namespace test_congested_paths
