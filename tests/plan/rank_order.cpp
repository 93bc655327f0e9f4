// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors

// The best plan does not depend on the numbers of the ranks, nor on memory that is enough, and it
// is never slower than the fastest ranks as replicas.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <ctime>
#include <numeric>
#include <optional>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include <catch2/catch_test_macros.hpp>

#include <heddle/core/text.hpp>
#include <heddle/machine.hpp>
#include <heddle/plan/impl/rank_order.hpp>
#include <heddle/plan/plan_problem.hpp>
#include <heddle/plan/planner/replicas.hpp>
#include <heddle/plan/planner/search.hpp>
#include <heddle/plan/profile.hpp>
#include <heddle/schedule/plan.hpp>
#include <heddle/systems/planners.hpp>

#include "plan/planner_battery.hpp"
#include "support/cases.hpp"
#include "support/coverage.hpp"

namespace test_rank_order {

using namespace heddle;

namespace {

Seconds best_time(const plan::PlanSearch& found) {
  for (const plan::PricedPlan& priced : found.plans())
    if (priced.found.plan && *priced.found.plan == found.best()) return priced.simulated;
  FAIL("the best plan has no price");
  return 0;
}

Device device(double speed, Bytes capacity) {
  return {.name = text("speed ", speed), .speed = speed, .memories = {{"memory", capacity, {}}}};
}

/// A problem, and the same one with other numbers of the ranks.
struct TwoNumberings {
  test::PlanCase one;
  std::vector<Machine> machines;
  std::string shape;
};

/// Returns the machine with rank i in place `place[i]`, as links of all pairs.
Machine as_links(const Machine& machine, const std::vector<std::size_t>& place) {
  const std::size_t n = place.size();
  std::vector<Device> devices(n);
  std::vector<Link> links(n * n);
  for (std::size_t a = 0; a < n; ++a) {
    devices[place[a]] = machine.device(Rank{a});
    for (std::size_t b = 0; b < n; ++b)
      links[place[a] * n + place[b]] = machine.link(Rank{a}, Rank{b});
  }
  return Machine::from_links(std::move(devices), std::move(links));
}

TwoNumberings random_numberings(std::uint64_t seed) {
  std::mt19937_64 random(seed);
  const auto draw = [&](std::size_t most) {
    return static_cast<std::size_t>(random() % (most + 1));
  };
  TwoNumberings two{.one = test::random_plan_case(seed), .machines = {}, .shape = {}};
  test::PlanCase& one = two.one;
  one.profile.reference = "fast";
  // Speeds of four kinds, and memories that differ; every sixth problem has little.
  const std::size_t ranks = 2 + draw(3);
  one.devices.clear();
  const Bytes most = 100 + draw(5900);
  const auto memory = [&] { return seed % 6 == 0 ? 100 + draw(most) : 10'000'000 + draw(3); };
  for (std::size_t r = 0; r < ranks; ++r) {
    const double speed = std::vector{0.01, 0.5, 1.0, 2.0}[draw(3)];
    one.devices.push_back(device(speed, memory()));
  }
  for (Level& level : one.levels) level.ports = {};
  one.levels.back().ranks = 6;
  std::vector<std::size_t> place(ranks);
  std::iota(place.begin(), place.end(), std::size_t{0});
  std::ranges::shuffle(place, random);
  const Machine machine = one.machine();
  if (one.levels.size() == 1) {
    two.shape = "equal links";
    test::PlanCase other = one;
    for (std::size_t r = 0; r < ranks; ++r) other.devices[place[r]] = one.devices[r];
    two.machines = {machine, other.machine()};
  } else if (ranks % 2 == 0 && draw(1) == 0) {
    two.shape = "nodes change places";
    test::PlanCase other = one;
    for (std::size_t r = 0; r < ranks; ++r)
      other.devices[(r + 2) % ranks / 2 * 2 + (r + 1) % 2] = one.devices[r];
    two.machines = {machine, other.machine()};
  } else {
    two.shape = "links of pairs";
    std::vector<std::size_t> same(ranks);
    std::iota(same.begin(), same.end(), std::size_t{0});
    two.machines = {as_links(machine, same), as_links(machine, place)};
  }
  return two;
}

/// Returns the least time of the k fastest ranks as replicas of equal shares, for any k, and of one
/// rank alone, or nothing if none fits.
std::optional<Seconds> replicas(const plan::PlanProblem& problem) {
  const Machine& machine = problem.machine();
  std::vector<Rank> fastest;
  for (int r = 0; r < machine.ranks(); ++r) fastest.push_back(Rank{r});
  std::ranges::stable_sort(
      fastest, [&](Rank a, Rank b) { return machine.device(a).speed > machine.device(b).speed; });
  std::optional<Seconds> least;
  const auto consider = [&](std::vector<Rank> ranks, int microbatches) {
    const auto count = static_cast<std::int64_t>(ranks.size());
    const std::int64_t samples = problem.options().batch / microbatches;
    if (count > samples) return;
    Plan one{.stages = {{.layers = {0, problem.layers()}, .ranks = std::move(ranks)}},
             .microbatches = microbatches,
             .schedule = problem.options().schedule};
    for (std::int64_t i = 0; i < count; ++i)
      one.stages[0].samples.push_back(samples / count + (i < samples % count));
    if (plan::memory_shortage(one, problem)) return;
    const Seconds time = plan::simulated_step(one, problem);
    if (!least || time < *least) least = time;
  };
  for (const int microbatches : problem.options().microbatches)
    for (std::size_t k = 1; k <= fastest.size(); ++k) {
      consider({fastest.begin(), fastest.begin() + static_cast<std::ptrdiff_t>(k)}, microbatches);
      consider({fastest[k - 1]}, microbatches);
    }
  return least;
}

}  // namespace

TEST_CASE("a slow host in front and a byte of memory more do not change the best plan") {
  const plan::LayerTimes second = {1, 1, 1, 0};
  const plan::Profile profile{.model = "one",
                              .layers = {{.parameters = 4, .measured = {{"fast", 1, 1, second}}}},
                              .reference = "fast"};
  const auto time = [&](std::vector<Device> devices) {
    const Machine machine = Machine::from_links(std::move(devices), std::vector<Link>(9, Link{}));
    return best_time(plan::search(profile, machine, {.batch = 8}, systems::planners()));
  };
  const Device slow = device(0.01, 0);
  for (const Bytes more : {0, 1}) {
    CHECK(time({slow, device(1, 1000 + more), device(1, 1000)}) == 12);
    CHECK(time({device(1, 1000), slow, device(1, 1000 + more)}) == 12);
    CHECK(time({device(1, 1000 + more), device(1, 1000), slow}) == 12);
  }
}

TEST_CASE("the best plan does not depend on the numbers of ranks, and beats the fastest replicas") {
  test::Coverage coverage("renumbered problems");
  std::vector<std::uint64_t> seeds(test::cases(500, 100'000));
  std::iota(seeds.begin(), seeds.end(), std::uint64_t{0});
  // Of these, planners find plans in few orders, because memory is little and links differ.
  seeds.insert(seeds.end(), {4482, 5322, 8574});
  for (const std::uint64_t seed : seeds) {
    const TwoNumberings two = random_numberings(seed);
    INFO("case " << seed << ", " << two.shape << "\n"
                 << two.one.profile << "\n"
                 << two.machines[0] << "\n"
                 << two.machines[1]);
    std::vector<Seconds> times;
    for (const Machine& machine : two.machines) {
      const plan::PlanProblem problem(two.one.profile, machine, two.one.options);
      const plan::PlanSearch found =
          plan::search(two.one.profile, machine, two.one.options, systems::planners());
      const bool any = std::ranges::any_of(
          found.plans(), [](const plan::PricedPlan& each) { return each.found.plan.has_value(); });
      const std::optional<Seconds> least = replicas(problem);
      times.push_back(any ? best_time(found) : 0);
      if (!least) continue;
      REQUIRE(any);
      REQUIRE(times.back() <= *least * (1 + 1e-12));
    }
    REQUIRE(times[0] == times[1]);
    coverage.count(two.shape, true);
    coverage.count("no plan fits", times[0] == 0);
  }
  INFO(coverage);
  CHECK(coverage.rarer_than(20).empty());
}

TEST_CASE("the best plan of 5 to 8 unlike ranks beats one of them and the fastest as replicas") {
  test::Coverage coverage("problems of unlike ranks");
  const std::uint64_t cases = test::cases(200, 20'000);
  for (std::uint64_t seed = 0; seed < cases; ++seed) {
    std::mt19937_64 random(seed);
    const auto draw = [&](std::uint64_t most) { return random() % (most + 1); };
    test::PlanCase one = test::random_plan_case(seed);
    one.profile.reference = "fast";
    one.options.batch *= 1 + static_cast<std::int64_t>(draw(7));
    const std::size_t ranks = 5 + draw(3);
    one.devices.clear();
    const Bytes most = 100 + draw(5900);
    const bool little = seed % 4 == 0;
    while (one.devices.size() < ranks)
      one.devices.push_back(device(static_cast<double>(1 + draw(2000)) / 1000,
                                   little ? 100 + draw(most) : 10'000'000 + draw(3)));
    one.levels.back().ranks = 8;
    Machine machine = one.machine();
    const bool pairs = draw(1) == 0;
    if (pairs)
      for (std::size_t a = 0; a < ranks; ++a)
        for (std::size_t b = 0; b < ranks; ++b) {
          Link link = machine.link(Rank{a}, Rank{b});
          link.bandwidth *= static_cast<double>(1 + draw(99)) / 10;
          if (a != b) machine.set_link(Rank{a}, Rank{b}, link);
        }
    INFO("case " << seed << "\n" << one.profile << "\n" << machine);
    const plan::PlanSearch found =
        plan::search(one.profile, machine, one.options, systems::planners());
    const std::optional<Seconds> least =
        replicas(plan::PlanProblem(one.profile, machine, one.options));
    coverage.count("links of pairs", pairs);
    coverage.count("little memory", little);
    coverage.count("no replicas fit", !least);
    coverage.count("replicas are best", least && best_time(found) == *least);
    coverage.count("another plan is faster", least && best_time(found) < *least);
    if (least) REQUIRE(best_time(found) <= *least * (1 + 1e-12));
  }
  INFO(coverage);
  CHECK(coverage.rarer_than(10).empty());
}

TEST_CASE("memory that is enough for every plan does not change the best one") {
  const std::uint64_t cases = test::cases(200, 20'000);
  for (std::uint64_t seed = 0; seed < cases; ++seed) {
    TwoNumberings two = random_numberings(3 * seed + 1);  // these have enough
    INFO("case " << seed);
    const auto time = [&](const Machine& machine) {
      return best_time(
          plan::search(two.one.profile, machine, two.one.options, systems::planners()));
    };
    Machine unknown = two.machines[0];
    for (int r = 0; r < unknown.ranks(); ++r) {
      Device one = unknown.device(Rank{r});
      one.memories.clear();
      unknown.set_device(Rank{r}, one);
    }
    REQUIRE(time(two.machines[0]) == time(unknown));
  }
}

TEST_CASE("a renumbered machine has the links, ports and shared lines of its ranks") {
  test::Coverage coverage("renumbered machines");
  const std::uint64_t cases = test::cases(200, 20'000);
  for (std::uint64_t seed = 0; seed < cases; ++seed) {
    std::mt19937_64 random(seed);
    const auto draw = [&](std::size_t most) {
      return static_cast<std::size_t>(random() % (most + 1));
    };
    // Nodes of equal or different sizes. Each node and some ranks have ports of their own.
    const bool equal = draw(1) == 0;
    std::vector<int> sizes;
    for (std::size_t node = 0, nodes = 2 + draw(2); node < nodes; ++node)
      sizes.push_back(equal ? 3 : 1 + static_cast<int>(draw(3)));
    const int ranks = std::accumulate(sizes.begin(), sizes.end(), 0);
    std::vector<Device> devices;
    for (int r = 0; r < ranks; ++r)
      devices.push_back(device(1 + static_cast<double>(draw(9)), 100 + draw(9)));
    Machine machine = Machine::hierarchical(
        devices, {{"rank", 1, Link{1e-6, 9e9}}, {"node", 4, Link{2e-6, 5e9}}, {"all", 100, Link{}}},
        {{}, sizes, {}});
    for (std::size_t node = 0; node < sizes.size(); ++node)
      machine.set_ports(1, node, {.out = 1e9 + static_cast<double>(node), .in = 2e9, .count = 2});
    machine.set_ports(0, draw(static_cast<std::size_t>(ranks) - 1), {.out = 7e9, .in = 8e9});
    const auto any = [&] { return Rank{draw(static_cast<std::size_t>(ranks) - 1)}; };
    const bool links = draw(1) == 0, lines = draw(1) == 0;
    if (links)
      for (int i = 0; i < 5; ++i)
        if (const Rank from = any(), to = any(); from != to)
          machine.set_link(from, to, {1e-3 * static_cast<double>(i), 3e9});
    if (lines)
      if (const Rank from = any(), to = any(); from != to)
        machine.share("a line", 4e9, {{from, to}, {to, from}});
    // The order of nodes, and of the ranks in each, is any one.
    std::vector<std::vector<Rank>> nodes(sizes.size());
    for (int r = 0; r < ranks; ++r) nodes[machine.group(1, Rank{r})].push_back(Rank{r});
    std::ranges::shuffle(nodes, random);
    std::vector<Rank> order;
    for (std::vector<Rank>& node : nodes) {
      std::ranges::shuffle(node, random);
      order.insert(order.end(), node.begin(), node.end());
    }
    const Machine other = plan::impl::renumbered(machine, order);
    INFO("case " << seed << "\n" << machine << "\n" << other);
    // The names of ports have the numbers of their groups. So only bandwidths are compared.
    const auto bandwidths = [](const Machine& of, Rank from, Rank to) {
      std::vector<double> all;
      const Machine::Route route = of.route(from, to, Lane{0});
      for (const auto* way : {&route.out, &route.in})
        for (const SharedId id : *way) all.push_back(of.shared()[+id].bandwidth);
      return all;
    };
    REQUIRE(other.lines().size() == machine.lines().size());
    for (std::size_t a = 0; a < order.size(); ++a) {
      REQUIRE(other.device(Rank{a}) == machine.device(order[a]));
      for (std::size_t level = 0; level < machine.levels().size(); ++level)
        REQUIRE(other.ports(level, other.group(level, Rank{a})) ==
                machine.ports(level, machine.group(level, order[a])));
      for (std::size_t b = 0; b < order.size(); ++b) {
        if (a == b) continue;
        REQUIRE(other.link(Rank{a}, Rank{b}) == machine.link(order[a], order[b]));
        REQUIRE(bandwidths(other, Rank{a}, Rank{b}) == bandwidths(machine, order[a], order[b]));
      }
    }
    coverage.count("equal nodes", equal);
    coverage.count("links of pairs", links);
    coverage.count("shared lines", !machine.lines().empty());
  }
  INFO(coverage);
  CHECK(coverage.rarer_than(20).empty());
}

TEST_CASE("the order of 130 ranks with links of pairs is found within its time") {
  // Alike ranks, and 13 nodes of ten, whose ranks the links alone tell apart.
  constexpr std::size_t ranks = 130;
  const plan::Profile profile{
      .model = "one",
      .layers = {{.parameters = 4, .measured = {{"fast", 1, 1, {1, 1, 1, 0}}}}},
      .reference = "fast"};
  std::vector<std::size_t> place(ranks);
  std::iota(place.begin(), place.end(), std::size_t{0});
  std::ranges::shuffle(place, std::mt19937_64(1));
  for (const std::size_t node : {ranks, std::size_t{10}}) {
    std::vector<Link> links(ranks * ranks);
    for (std::size_t a = 0; a < ranks; ++a)
      for (std::size_t b = 0; b < ranks; ++b)
        if (place[a] / node != place[b] / node) links[a * ranks + b] = {1e-3, 1e9};
    const Machine machine =
        Machine::from_links(std::vector<Device>(ranks, device(1, 0)), std::move(links));
    const plan::PlanProblem problem(profile, machine, {.batch = 8});
    const std::clock_t begin = std::clock();
    const std::vector<Rank> order =
        plan::impl::rank_order(problem, plan::impl::link_numbers(machine));
    const double seconds = static_cast<double>(std::clock() - begin) / CLOCKS_PER_SEC;
    INFO("nodes of " << node << " ranks, " << seconds << " s");
    CHECK(seconds < 1);
    REQUIRE(order.size() == ranks);
    for (std::size_t i = 0; i < ranks; ++i)
      REQUIRE(place[+order[i]] / node == place[+order[i / node * node]] / node);
  }
}

TEST_CASE("ranks whose memories are all too small are given up at once") {
  constexpr std::size_t ranks = 300;
  const plan::Profile profile{
      .model = "one",
      .layers = {{.parameters = 1'000'000, .measured = {{"fast", 1, 1, {1, 1, 1, 0}}}}},
      .reference = "fast"};
  std::vector<Device> devices;
  for (std::size_t r = 0; r < ranks; ++r) devices.push_back(device(1, 1000 + r));
  const Machine machine =
      Machine::from_links(std::move(devices), std::vector<Link>(ranks * ranks, Link{1e-6, 1e9}));
  const std::clock_t begin = std::clock();
  const plan::FoundPlan found =
      plan::Replicas{}.search(plan::PlanProblem(profile, machine, {.batch = 8}));
  const double seconds = static_cast<double>(std::clock() - begin) / CLOCKS_PER_SEC;
  INFO(seconds << " s, " << found.infeasible);
  CHECK(seconds < 1);
  CHECK_FALSE(found.plan);
  CHECK(found.infeasible.find("1299") != std::string::npos);  // the bytes of the roomiest rank
}

}  // namespace test_rank_order
