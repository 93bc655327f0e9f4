// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors

// The planner Holmes: groups within one kind of network, the bytes that cross between kinds, and
// what that gains over groups that span them.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <random>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include <catch2/catch_approx.hpp>
#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers_exception.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>

#include <heddle/core/error.hpp>
#include <heddle/core/text.hpp>
#include <heddle/machine/machine.hpp>
#include <heddle/machine/network.hpp>
#include <heddle/plan/plan_problem.hpp>
#include <heddle/plan/plan_schedule.hpp>
#include <heddle/plan/profile.hpp>
#include <heddle/schedule/action.hpp>
#include <heddle/schedule/collective/form.hpp>
#include <heddle/schedule/pass/expand.hpp>
#include <heddle/schedule/pass/shard_updates.hpp>
#include <heddle/schedule/plan.hpp>
#include <heddle/schedule/schedule.hpp>
#include <heddle/simulate/simulate.hpp>
#include <heddle/systems/holmes/holmes.hpp>

#include "support/cases.hpp"
#include "support/network_cards.hpp"

namespace test_holmes {

using namespace heddle;
using namespace heddle::test;
using Catch::Matchers::ContainsSubstring;
using Catch::Matchers::MessageMatches;
using plan::PlanProblem;
using systems::Holmes;

TEST_CASE("clusters are what one kind of network joins") {
  using enum Card;
  const auto sizes = [](const Machine& machine) {
    std::vector<std::size_t> result;
    for (const auto& members : systems::network_clusters(machine)) result.push_back(members.size());
    return result;
  };
  CHECK(sizes(cluster({infiniband, infiniband, roce, roce}, 4)) == std::vector<std::size_t>{8, 8});
  CHECK(sizes(cluster({infiniband, roce, infiniband, ethernet}, 2)) ==
        std::vector<std::size_t>{4, 4});  // the last two reach all others by Ethernet
  CHECK(sizes(cluster({ethernet, ethernet, ethernet}, 2)) == std::vector<std::size_t>{6});
  CHECK(sizes(Machine::uniform(5, {"gpu"}, {1e-6, 1e9})) == std::vector<std::size_t>{5});
  CHECK(sizes(Machine::uniform(1, {"gpu"}, {1e-6, 1e9})) == std::vector<std::size_t>{1});
  // A level of single ranks, for example for ports of their own, does not make nodes of them.
  const std::vector<Level> levels = {{.name = "device", .link = {1e-7, 1e12}},
                                     {.name = "node", .ranks = 2, .link = {1e-6, 100e9}},
                                     {.name = "all", .ranks = 4, .link = {1e-5, 10e9}}};
  const Machine single = Machine::hierarchical(std::vector(4, Device{"gpu"}), levels);
  const Machine paired =
      Machine::hierarchical(std::vector(4, Device{"gpu"}), {levels.begin() + 1, levels.end()});
  CHECK(systems::network_clusters(single) == systems::network_clusters(paired));
  CHECK(connect(single, {{"Ethernet", {2e-5, 1e9}, {0, 1, 2, 3}}}).link(0, 1) == levels[1].link);
  const auto split = systems::network_clusters(cluster({infiniband, roce, infiniband}, 1));
  CHECK(split == std::vector<std::vector<Rank>>{{Rank{0}, Rank{2}}, {Rank{1}}});
}

TEST_CASE("a cluster in which no kind of network joins two devices is refused") {
  // Two nodes of two ranks have InfiniBand and two have RoCE, and nobody ordered a common network.
  std::vector<Device> devices(8, Device{"a100"});
  for (std::size_t r = 4; r < 8; ++r) devices[r] = {"mi250"};
  const Machine nodes =
      Machine::hierarchical(devices, {{.name = "node", .ranks = 2, .link = {2e-6, 300e9}},
                                      {.name = "cluster", .ranks = 8, .link = {20e-6, 3.1e9}}});
  std::vector<NetworkKind> networks = {{"InfiniBand", {5e-6, 100e9}, {0, 1, 2, 3}},
                                       {"RoCE", {5e-6, 50e9}, {4, 5, 6, 7}}};
  CHECK_THROWS_MATCHES(connect(nodes, networks), contract_error,
                       MessageMatches(ContainsSubstring("no kind of network joins two devices") &&
                                      ContainsSubstring("rank 0 ('a100') and rank 4 ('mi250')") &&
                                      ContainsSubstring("add a network that both are on")));
  // With the remedy, Holmes finds the clusters, and a plan.
  networks.push_back({"Ethernet", {20e-6, 3.1e9}, {0, 1, 2, 3, 4, 5, 6, 7}});
  const Machine joined = connect(nodes, networks);
  CHECK(joined.link(0, 1) == Link{2e-6, 300e9});
  CHECK(joined.link(1, 2) == Link{5e-6, 100e9});
  CHECK(joined.link(7, 4) == Link{5e-6, 50e9});
  CHECK(joined.link(3, 4) == Link{20e-6, 3.1e9});
  CHECK(systems::network_clusters(joined) ==
        std::vector<std::vector<Rank>>{{0, 1, 2, 3}, {4, 5, 6, 7}});
  const plan::Profile profile = equal_layers(4, 1e-3, 1000, 1000);
  const plan::FoundPlan found = Holmes{}.search(PlanProblem(profile, joined, {.batch = 8}));
  REQUIRE(found.plan);
  for (const PlanStage& stage : found.plan->stages)
    for (const Rank rank : stage.ranks) CHECK((rank < 4) == (stage.ranks.front() < 4));
  networks[2].ranks = {0, 1, 8};
  CHECK_THROWS_MATCHES(
      connect(nodes, networks), contract_error,
      MessageMatches(ContainsSubstring("'Ethernet'") && ContainsSubstring("rank 8 of 8")));
  networks[2] = {"Ethernet", {20e-6, 0}, {0, 1, 2, 3, 4, 5, 6, 7}};
  CHECK_THROWS_MATCHES(connect(nodes, networks), contract_error,
                       MessageMatches(ContainsSubstring("a bandwidth must be above 0")));
  // Without nodes, every rank is on networks of its own.
  const Machine alone = Machine::uniform(2, {"gpu"}, {1e-6, 1e9});
  CHECK(connect(alone, {{"Ethernet", {1, 2}, {0, 1}}}).link(0, 1) == Link{1, 2});
}

TEST_CASE("no data or tensor group spans two kinds of network") {
  std::mt19937_64 random(74);
  const auto draw = [&](int low, int high) {
    return std::uniform_int_distribution<int>(low, high)(random);
  };
  int planned = 0;
  int mixed = 0;
  for (std::uint64_t i = 0; i < cases(1000, 100'000); ++i) {
    std::vector<Card> cards;
    for (int n = draw(1, 4); n > 0; --n) cards.push_back(static_cast<Card>(draw(0, 2)));
    const int size = draw(1, 3);
    const Machine machine = cluster(cards, size);
    const plan::Profile profile = equal_layers(draw(1, 8), 1e-3, 1000, 10'000);
    const int batch = draw(1, 12);
    const PlanProblem problem(profile, machine, {.batch = batch});
    const plan::FoundPlan found = Holmes{}.search(problem);
    // The only node with a kind of card talks to all others by Ethernet.
    std::vector<Card> networks = cards;
    for (Card& card : networks)
      if (std::ranges::count(cards, card) == 1) card = Card::ethernet;
    const std::set<Card> kinds(networks.begin(), networks.end());
    INFO("case " << i << ": " << machine << found.infeasible);
    if (!found.plan) {
      // More kinds than layers, or a cluster whose ranks do not all get a sample.
      REQUIRE(found.infeasible.find("clusters") != std::string::npos);
      REQUIRE((kinds.size() > profile.layers.size() || batch < machine.ranks()));
      continue;
    }
    ++planned;
    mixed += kinds.size() > 1;
    check(*found.plan, problem.layers(), machine.ranks());
    REQUIRE(found.formula == Holmes{}.formula(*found.plan, problem));
    REQUIRE(found.plan == Holmes{}.search(problem).plan);
    std::size_t used = 0;
    for (const PlanStage& stage : found.plan->stages) {
      used += stage.ranks.size();
      std::set<Card> of_stage;
      for (const Rank rank : stage.ranks)
        of_stage.insert(networks[+rank / static_cast<std::size_t>(size)]);
      REQUIRE(of_stage.size() == 1);
    }
    REQUIRE(used == static_cast<std::size_t>(machine.ranks()));
  }
  CHECK(planned > 300);
  CHECK(mixed > 100);
}

TEST_CASE("only activations and their gradients cross the slow network") {
  // 2 InfiniBand and 2 RoCE nodes: the cut between them carries each sample's activation once in
  // each direction, and no gradient of weights.
  using enum Card;
  const Machine machine = cluster({infiniband, infiniband, roce, roce}, 2);
  const Bytes output = 1'000'003;
  const plan::Profile profile = equal_layers(12, 10e-3, output, 40'000'000);
  const PlanProblem problem(profile, machine, {.batch = 64});
  const plan::FoundPlan found = Holmes{}.search(problem);
  REQUIRE(found.plan);
  const auto kind = [&](Rank rank) { return +rank / 4; };
  // The rank of a stage that has a sample: groups of one rank have consecutive samples.
  const auto owner = [](const PlanStage& stage, std::int64_t sample) {
    std::size_t group = 0;
    while (sample >= stage.samples[group]) sample -= stage.samples[group++];
    return stage.ranks[group];
  };
  Bytes crossing = 0;
  for (std::size_t s = 0; s + 1 < found.plan->stages.size(); ++s)
    for (std::int64_t i = 0; i < found.plan->microbatch_samples(); ++i) {
      const Rank from = owner(found.plan->stages[s], i);
      const Rank to = owner(found.plan->stages[s + 1], i);
      if (kind(from) != kind(to)) crossing += 2 * output;  // there, and the gradient back
    }
  crossing *= static_cast<Bytes>(found.plan->microbatches);
  CHECK(crossing == 2 * 64 * output);
  for (const PlanStage& stage : found.plan->stages)
    for (const Rank rank : stage.ranks) CHECK(kind(rank) == kind(stage.ranks.front()));
}

TEST_CASE("groups within their networks come near the fast network alone") {
  // 4 nodes of 8 ranks, in two stages.
  using enum Card;
  const plan::Profile profile = gpt_3_6b();
  const int layers = static_cast<int>(profile.layers.size());
  const auto step = [&](const std::vector<Card>& cards) {
    const Machine machine = cluster(cards, 8);
    const PlanProblem problem(profile, machine, {.batch = 768});
    return Holmes{}.formula(two_halves(layers, 32, 48, 16), problem);
  };
  const Seconds fast = step({infiniband, infiniband, infiniband, infiniband});
  const Seconds slow = step({ethernet, ethernet, ethernet, ethernet});
  const Seconds hybrid = step({infiniband, infiniband, roce, roce});
  UNSCOPED_INFO("InfiniBand " << fast << " s, Ethernet " << slow << " s, hybrid " << hybrid
                              << " s: " << slow / hybrid << " of Ethernet's rate, " << fast / hybrid
                              << " of InfiniBand's");
  CHECK(slow / hybrid >= 1.15);
  CHECK(fast / hybrid >= 0.75);
  CHECK(fast <= hybrid);
  // A plan whose data groups span the kinds gains nothing: all sums go over Ethernet.
  const Machine machine = cluster({infiniband, roce, infiniband, roce}, 8);
  const PlanProblem problem(profile, machine, {.batch = 768});
  CHECK(Holmes{}.formula(two_halves(layers, 32, 48, 16), problem) >= slow / 1.02);
  // What the search finds is at least as good as these two stages of its own clusters.
  const Machine two = cluster({infiniband, infiniband, roce, roce}, 8);
  const plan::FoundPlan found = Holmes{}.search(PlanProblem(profile, two, {.batch = 768}));
  REQUIRE(found.plan);
  CHECK(found.formula <= hybrid);
}

namespace {

/// Two or more replicas of all layers, or two stages of them on ranks of one network.
Plan replicated(int layers, int replicas, int stages, int buckets) {
  Plan plan{.stages = {}, .microbatches = 4, .sharding = "zero1", .buckets = buckets};
  for (int s = 0; s < stages; ++s) {
    PlanStage stage{.layers = {s * layers / stages, (s + 1) * layers / stages}};
    for (int r = 0; r < replicas; ++r) stage.ranks.push_back(Rank{s * replicas + r});
    stage.samples.assign(static_cast<std::size_t>(replicas), 1);
    plan.stages.push_back(std::move(stage));
  }
  return plan;
}

/// Bytes that ranks of a stage send each other, by stage of the plan.
std::vector<Bytes> sent_within(const Schedule& schedule, std::size_t replicas) {
  std::vector<Bytes> bytes(static_cast<std::size_t>(schedule.ranks()) / replicas);
  for (std::size_t i = 0; i < schedule.size(); ++i) {
    const ActionId id{i};
    const Queue& queue = schedule[schedule[id].queue];
    if (schedule[id].kind == Kind::move && +queue.from / replicas == +queue.to / replicas)
      bytes[+queue.from / replicas] += schedule.bytes(schedule.uses(id).front());
  }
  return bytes;
}

}  // namespace

TEST_CASE("sums in buckets take the formula's time in the Schedule, and move its bytes") {
  constexpr int layers = 12;
  constexpr Seconds forward = 1e-3, update = 0.5e-3;
  constexpr Bytes gradient = 1'200'000;  // of a layer
  plan::Profile profile = equal_layers(layers, forward, 4, gradient);
  for (plan::ProfiledLayer& layer : profile.layers) layer.measured[0].times.update = update;
  for (const double bandwidth : {0.2e9, 0.5e9, 1e9, 3e9, 30e9})  // sums above and below backwards
    for (const int replicas : {2, 3, 4})
      for (const int buckets : {1, 2, 3, 4, 12, 100}) {
        INFO(bandwidth << " B/s, " << replicas << " replicas, " << buckets << " buckets");
        const Machine machine = Machine::uniform(replicas, {"gpu"}, {0, bandwidth});
        const Plan plan = replicated(layers, replicas, 1, buckets);
        const PlanProblem problem(profile, machine, {.batch = plan.batch()});
        // K equal buckets: backwards b, sums and updates r, in a flow shop of two machines.
        const int k = std::min(buckets, layers);
        const double n = replicas;
        const Seconds b = 2 * layers * forward / k;
        const Seconds r =
            (2 * (n - 1) / n * layers * gradient / bandwidth + layers * update / n) / k;
        const Seconds behind = std::max(r, k * r - (k - 1) * b);
        const Seconds expected = 4 * 3 * layers * forward + behind;
        CHECK(Holmes{}.formula(plan, problem) == Catch::Approx(expected).epsilon(1e-12));
        CHECK(plan::behind_backward(plan, plan.stages[0], problem) ==
              Catch::Approx(behind).epsilon(1e-12));
        CHECK(plan::simulated_step(plan, problem) == Catch::Approx(expected).epsilon(1e-12));
        const Schedule made = plan::schedule(plan, profile);
        const plan::RankCosts costs = plan::costs(plan, profile, machine);
        CHECK(simulate(made, costs).makespan() == Catch::Approx(expected).epsilon(1e-12));
        const Schedule sharded = schedule::shard_updates(made);
        const Seconds executed = simulate(sharded, costs).makespan();
        if (replicas == 2) CHECK(executed == Catch::Approx(expected).epsilon(1e-12));
        CHECK(executed <= expected * (1 + 1e-12));  // more replicas have a link to each other one
        const auto all = static_cast<Bytes>(2 * (replicas - 1) * layers) * gradient;
        CHECK(sent_within(sharded, static_cast<std::size_t>(replicas)) == std::vector<Bytes>{all});
        CHECK(sent_within(schedule::expand(made, schedule::CollectiveForm{}),
                          static_cast<std::size_t>(replicas)) == std::vector<Bytes>{all});
      }
}

TEST_CASE("sums of two stages in buckets, and the part that the drain hides") {
  constexpr int layers = 12, replicas = 2;
  const plan::Profile profile = equal_layers(layers, 1e-3, 40'000, 1'200'000);
  for (const double bandwidth : {0.1e9, 0.3e9, 1e9, 10e9})
    for (const int buckets : {1, 2, 6}) {
      INFO(bandwidth << " B/s, " << buckets << " buckets");
      const Machine machine = Machine::uniform(4, {"gpu"}, {0, bandwidth});
      const Plan plan = replicated(layers, replicas, 2, buckets);
      const PlanProblem problem(profile, machine, {.batch = plan.batch()});
      const Seconds step = plan::simulated_step(plan, problem);
      const Seconds formula = Holmes{}.formula(plan, problem);
      // 1F1B hides messages that the formula counts with every microbatch: 3 x 2 at most.
      CHECK(step <= formula * (1 + 1e-12));
      CHECK(step >= formula - 3 * 2 * 40'000 / bandwidth - 1e-12);
      const Schedule sharded = schedule::shard_updates(plan::schedule(plan, profile));
      const Seconds executed = simulate(sharded, plan::costs(plan, profile, machine)).makespan();
      CHECK(executed == Catch::Approx(step).epsilon(1e-12));
      CHECK(sent_within(sharded, replicas) ==
            std::vector<Bytes>(2, Bytes{2 * (replicas - 1)} * 6 * 1'200'000));
    }
}

TEST_CASE("Holmes chooses buckets if they hide sums, and none if latencies outweigh that") {
  const plan::Profile profile = equal_layers(16, 1e-3, 4, 400'000);
  const auto found = [&](Link link, int buckets) {
    const Machine machine = Machine::uniform(2, {"gpu"}, link);
    const PlanProblem problem(profile, machine, {.batch = 2, .microbatches = {1}});
    const plan::FoundPlan best = Holmes{.buckets = buckets}.search(problem);
    REQUIRE(best.plan);
    CHECK(best.formula == Holmes{}.formula(*best.plan, problem));
    return best;
  };
  CHECK(found({0, 0.4e9}, 8).plan->buckets == 8);
  CHECK(found({0, 0.4e9}, 1).plan->buckets == 1);
  CHECK(found({0, 0.4e9}, 8).formula < found({0, 0.4e9}, 4).formula);
  CHECK(found({0, 0.4e9}, 4).formula < found({0, 0.4e9}, 1).formula);
  CHECK(found({1, 0.4e9}, 8).plan->buckets == 1);
}

TEST_CASE("stages of unequal speed get unequal layers") {
  // One node 20 % faster than the other. Even stages wait for the slower one: 1.2 / 1.1 at most.
  using enum Card;
  std::vector<Device> devices(8, Device{"gpu"});
  for (std::size_t r = 0; r < 4; ++r) devices[r] = {.name = "faster", .speed = 1.2};
  const Machine machine = cluster({infiniband, infiniband, roce, roce}, 2, devices);
  const plan::Profile profile = equal_layers(44, 1e-3, 1000, 1000);
  const plan::PlanOptions options{.batch = 16, .microbatches = {4}};
  const plan::FoundPlan uneven = Holmes{}.search(PlanProblem(profile, machine, options));
  const plan::FoundPlan even = Holmes{.even = true}.search(PlanProblem(profile, machine, options));
  REQUIRE(uneven.plan);
  REQUIRE(even.plan);
  CHECK(uneven.plan->stages.front().layers.size() > uneven.plan->stages.back().layers.size());
  UNSCOPED_INFO("even over uneven " << even.formula / uneven.formula);
  CHECK(even.formula / uneven.formula >= 1.03);
  CHECK(even.formula / uneven.formula <= 1.1);
}

TEST_CASE("what does not fit names the rank and its bytes") {
  std::vector<Device> devices(4, Device{.name = "gpu", .memories = {{"memory", Bytes{1000}}}});
  using enum Card;
  const Machine machine = cluster({infiniband, roce}, 2, devices);
  const plan::Profile profile = equal_layers(4, 1e-3, 10, 1'000'000);
  const plan::FoundPlan found = Holmes{}.search(PlanProblem(profile, machine, {.batch = 8}));
  CHECK_FALSE(found.plan);
  CHECK(found.infeasible.find("bytes and has 1000") != std::string::npos);
}

}  // namespace test_holmes
