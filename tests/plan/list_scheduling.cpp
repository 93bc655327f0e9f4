// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors

// List scheduling: what it gives by hand, that it gives what weave() accepts whatever the graph,
// and what it says in a dead end.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <random>
#include <ranges>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>

#include <heddle/plan.hpp>
#include <heddle/schedule.hpp>
#include <heddle/simulate.hpp>
#include <heddle/simulate/any_time.hpp>

#include "support/complaint.hpp"
#include "support/rational.hpp"

namespace test_list_scheduling {

using namespace heddle;
using Catch::Matchers::ContainsSubstring;
using test::Rational;

namespace {

Order order(Kind kind, int stage, int item) { return {kind, Stage{stage}, Item{item}}; }

constexpr Kind F = Kind::forward, I = Kind::backward_input, W = Kind::backward_weight,
               B = Kind::backward;

const std::vector<plan::Rule> rules = plan::standard_rules();

/// Every rank computes the same as before, in some order.
bool same_work(const Orders& a, const Orders& b) {
  const auto sorted = [](std::vector<Order> list) {
    std::sort(list.begin(), list.end(), [](const Order& x, const Order& y) {
      return std::tuple(x.kind, x.stage, x.item) < std::tuple(y.kind, y.stage, y.item);
    });
    return list;
  };
  return a.graph == b.graph && a.name == b.name &&
         std::equal(a.ranks.begin(), a.ranks.end(), b.ranks.begin(), b.ranks.end(),
                    [&](const auto& x, const auto& y) { return sorted(x) == sorted(y); });
}

std::int64_t most_live(const Orders& orders) {
  const auto live = schedule::live_activations(orders);
  return *std::max_element(live.begin(), live.end());
}

}  // namespace

// For costs that tile. A greedy rank may begin a forward just before a backward arrives, which
// costs 1/21 at P = 8, M = 13, F = 2/7, B = 5/3.
TEST_CASE("backward first under a cap of P makes 1F1B of GPipe's work, to the closed form") {
  using Exact = BasicStageCosts<Rational>;
  for (const int p : {1, 2, 3, 4, 7, 8}) {
    for (const int m : {1, 2, 3, 5, 8, 13}) {
      for (const auto& [forward, backward] :
           {std::pair<Rational, Rational>{1, 2}, {1, 1}, {{2, 7}, {4, 7}}}) {
        const Exact costs{.forward = forward, .backward = backward};
        const Orders orders = plan::list_schedule(schedule::gpipe(p, m), costs, {.cap = p});
        INFO(p << " ranks, " << m << " microbatches");
        CHECK(simulate(weave(orders), costs).makespan() ==
              Rational(m + p - 1) * (forward + backward));
        CHECK(most_live(orders) <= p);
      }
    }
  }
}

TEST_CASE("a list by hand: latencies are waited for, and what is ready goes meanwhile") {
  // Two ranks, one unit each way, F = 1, B = 2, latency 3. Rank 1 gets microbatch 0 at 4. It does
  // 4-5 F0, 5-7 B0, 7-8 F1, 8-10 B1. Rank 0 gets the gradients at 10 and 13.
  const Orders orders =
      plan::list_schedule(schedule::gpipe(2, 2), {.forward = 1, .backward = 2, .latency = 3});
  CHECK(to_string(orders) == "0F0,0F1,0B0,0B1\n1F0,1B0,1F1,1B1\n");
  CHECK(simulate(weave(orders), {.forward = 1, .backward = 2, .latency = 3}).makespan() == 15);
  // Where channels are occupied for 4, microbatch 1 comes to rank 1 at 9 only: after 7, it idles.
  const StageCosts slow{.forward = 1, .backward = 2, .per_byte = 4};
  const Orders queued = plan::list_schedule(schedule::gpipe(2, 2), slow, {}, {.activation = 1});
  // Rank 1: F0 5-6, B0 6-8, F1 9-10, B1 10-12; gradients at rank 0 at 12 and 16.
  CHECK(simulate(weave(queued, {.activation = 1}), slow).makespan() == 18);
  // Forward first takes both forwards where both are there.
  const Orders forwards = plan::list_schedule(schedule::gpipe(2, 2), {.forward = 1, .backward = 2},
                                              {.priority = plan::forward_first});
  CHECK(to_string(forwards) == "0F0,0F1,0B0,0B1\n1F0,1F1,1B0,1B1\n");
  // Any callable is a priority: the last microbatch first.
  const Orders last = plan::list_schedule(schedule::gpipe(1, 3), {.forward = 1, .backward = 2},
                                          {.priority = [](const plan::Candidate& c) {
                                            return plan::Urgency{-c.turn, 0, 0};
                                          }});
  CHECK(to_string(last) == "0F2,0B2,0F1,0B1,0F0,0B0\n");
}

TEST_CASE("what a priority sees of an order") {
  // Interleaved, so that stages 0 and 2 are on rank 0.
  std::vector<plan::Candidate> seen;
  (void)plan::list_schedule(schedule::interleaved(2, 2, 2), {.forward = 1, .backward = 2},
                            {.priority = [&](const plan::Candidate& c) {
                              seen.push_back(c);
                              return plan::backward_first(c);
                            }});
  REQUIRE(seen.size() == 16);
  for (const plan::Candidate& c : seen) {
    CHECK(c.rank == Rank{+c.order.stage % 2});
    CHECK(c.level == static_cast<int>(+c.order.stage));
    CHECK(c.levels == 4);
    CHECK(c.turn == static_cast<int>(+c.order.item));
    CHECK(c.progress() == (c.order.kind == F ? c.level : 7 - c.level));
  }
}

TEST_CASE("turns are counted per rank where a stage is on several") {
  // Stage 0 on both ranks, rank 1 with the microbatches 2 and 3: its first turn is microbatch 2.
  Orders orders{"replicas", {}, StageGraph::chain(1)};
  orders.graph.replicas = true;
  for (int r = 0; r < 2; ++r)
    orders.ranks.push_back(
        {order(F, 0, 2 * r), order(F, 0, 2 * r + 1), order(B, 0, 2 * r), order(B, 0, 2 * r + 1)});
  const Orders listed = plan::list_schedule(orders, {.forward = 1, .backward = 2},
                                            {.priority = plan::microbatch_first});
  CHECK(to_string(listed) == "0F0,0B0,0F1,0B1\n0F2,0B2,0F3,0B3\n");
}

TEST_CASE("branches, joins, split backward passes and every rule: a legal list of the same work") {
  const StageGraph diamond{
      4, {{Stage{0}, Stage{1}}, {Stage{0}, Stage{2}}, {Stage{1}, Stage{3}}, {Stage{2}, Stage{3}}}};
  Orders orders{"diamond", {{}, {}}, diamond};
  for (const Kind kind : {F, I, W})
    for (int m = 0; m < 5; ++m)
      for (int s = 0; s < 4; ++s) {
        const int stage = kind == F ? s : 3 - s;
        orders.ranks[static_cast<std::size_t>(stage / 2)].push_back(order(kind, stage, m));
      }
  for (const plan::Rule& rule : rules) {
    INFO(rule.name);
    for (const int cap : {0, 6}) {  // 6: room for a stage that finishes after 5 that do not
      const Orders listed = plan::list_schedule(
          orders, {.forward = 1, .backward_input = 1, .backward_weight = 1}, {rule.priority, cap});
      CHECK(same_work(listed, orders));
      CHECK((cap == 0 || most_live(listed) <= cap));
      // 5 microbatches x 2 stages x 3 units on each rank, and no rank idles for ever.
      const double makespan =
          simulate(weave(listed), {.forward = 1, .backward_input = 1, .backward_weight = 1})
              .makespan();
      CHECK(makespan >= 30);
      CHECK(makespan <= 60);
    }
  }
}

TEST_CASE("W last: 27 under a cap of 4 for P = 4 and M = 8, where W first takes 30") {
  const StageCosts unit{.forward = 1, .backward_input = 1, .backward_weight = 1};
  const Orders split = schedule::split_backward(schedule::gpipe(4, 8));
  const auto makespan = [&](const plan::Priority& priority) {
    return simulate(weave(plan::list_schedule(split, unit, {priority, 4})), unit).makespan();
  };
  CHECK(makespan(plan::backward_first) == 30);
  CHECK(makespan(plan::WeightsLast{}) == 27);
  const auto in_rules =
      std::ranges::min(rules, {}, [&](const plan::Rule& rule) { return makespan(rule.priority); });
  CHECK(makespan(in_rules.priority) == 27);
  for (const int p : {2, 3, 5, 8})
    for (const int m : {p, 2 * p, 3 * p + 1}) {
      const Orders h1 = schedule::zb_h1(p, m);
      const Orders listed = plan::list_schedule(h1, unit, {plan::WeightsLast{}, p});
      INFO(h1.name);
      CHECK(most_live(listed) <= p);
      CHECK(simulate(weave(listed), unit).makespan() == simulate(weave(h1), unit).makespan());
    }
}

TEST_CASE("list, then fill: of the orders of GPipe within P activations no longer than ZB-H1") {
  const StageCosts unit{.forward = 1, .backward_input = 1, .backward_weight = 1};
  for (const int p : {2, 3, 4, 5, 8})
    for (const int m : {p, 2 * p, 3 * p + 1}) {
      const Orders split = schedule::split_backward(schedule::gpipe(p, m));
      const auto found = plan::coordinate(split, unit, {.cap = p});
      INFO(split.name << ", " << found.rule);
      CHECK(found.extra == 0);
      CHECK(most_live(found.orders) <= p);
      CHECK(found.makespan == simulate(weave(found.orders), unit).makespan());
      CHECK(found.makespan <= simulate(weave(schedule::zb_h1(p, m)), unit).makespan());
    }
}

TEST_CASE("no rule leads ZB-V into a dead end under a cap that one microbatch at a time keeps") {
  const StageCosts costs{
      .forward = 1, .backward_input = 1.3, .backward_weight = 0.7, .latency = 0.1};
  for (const int p : {2, 3, 4, 6, 8})
    for (const int m : {1, p, 2 * p, 3 * p + 1})
      for (const int cap : {2, 3, p + 1, 2 * p})
        for (const plan::Rule& rule : rules) {
          const Orders orders = schedule::zb_v(p, m);
          INFO(orders.name << " under " << cap << ", " << rule.name);
          const Orders listed = plan::list_schedule(orders, costs, {rule.priority, cap});
          CHECK(same_work(listed, orders));
          CHECK(most_live(listed) <= cap);
        }
}

TEST_CASE("random models of unequal activations: no dead end under a cap that holds a microbatch") {
  std::mt19937 random(25);
  const auto below = [&](int n) { return static_cast<int>(random() % static_cast<unsigned>(n)); };
  for (int round = 0; round < 60; ++round) {
    const int stages = 1 + below(8);
    const auto ranks = static_cast<std::size_t>(1 + below(4));
    Orders orders{"random", {}, StageGraph::chain(stages)};
    for (int to = 2; to < stages; ++to)
      if (below(3) == 0) orders.graph.edges.push_back({Stage{below(to - 1)}, Stage{to}});
    orders.ranks.resize(ranks);
    std::vector<std::size_t> place;
    std::vector<std::int64_t> activations;
    std::vector<std::int64_t> microbatch(ranks, 0);  // what one keeps on each rank
    for (int s = 0; s < stages; ++s) {
      place.push_back(static_cast<std::size_t>(below(static_cast<int>(ranks))));
      activations.push_back(below(4));
      microbatch[place.back()] += activations.back();
    }
    const bool split = below(2) == 0;
    for (const Kind kind : {F, split ? I : B, W})
      for (int m = 0; m < 6; ++m)
        for (int s = 0; s < stages; ++s) {
          if (kind == W && !split) continue;
          const int stage = kind == F ? s : stages - 1 - s;
          orders.ranks[place[static_cast<std::size_t>(stage)]].push_back(order(kind, stage, m));
        }
    const StageCosts costs{.forward = 1.0 + below(3),
                           .backward_input = 1.0 + below(3),
                           .backward_weight = 0.5 * below(4),
                           .latency = 0.5 * below(3)};
    const std::int64_t least = std::max<std::int64_t>(1, std::ranges::max(microbatch));
    for (const std::int64_t cap : {least, least + 1 + below(3)})
      for (const plan::Rule& rule : rules) {
        INFO("round " << round << " under " << cap << ", " << rule.name);
        const Orders listed = plan::list_schedule(orders, costs, {rule.priority, cap, activations});
        CHECK(same_work(listed, orders));
        CHECK(std::ranges::max(schedule::live_activations(listed, activations)) <= cap);
        CHECK_NOTHROW(weave(listed));
      }
  }
}

TEST_CASE("random graphs and costs: a legal list of the same work, or a dead end under the cap") {
  std::mt19937 random(7);
  const auto below = [&](int n) { return static_cast<int>(random() % static_cast<unsigned>(n)); };
  int dead_ends = 0;
  for (int round = 0; round < 60; ++round) {
    const int stages = 1 + below(6);
    const int ranks = 1 + below(3);
    const int items = 1 + below(5);
    Orders orders{"random", {}, {stages, {}}};
    for (int to = 1; to < stages; ++to)
      for (int from = 0; from < to; ++from)
        if (below(2) == 0)
          orders.graph.edges.push_back({Stage{from}, Stage{to}, below(4) == 0 ? B : F});
    orders.ranks.resize(static_cast<std::size_t>(ranks));
    std::vector<std::size_t> place;
    for (int s = 0; s < stages; ++s) place.push_back(static_cast<std::size_t>(below(ranks)));
    for (const Kind kind : {F, B})
      for (int m = 0; m < items; ++m)
        for (int s = 0; s < stages; ++s) {
          const int stage = kind == F ? s : stages - 1 - s;
          orders.ranks[place[static_cast<std::size_t>(stage)]].push_back(order(kind, stage, m));
        }
    const StageCosts costs{
        .forward = 1.0 + below(3), .backward = 1.0 + below(3), .latency = 0.5 * below(3)};
    for (const plan::Rule& rule : rules) {
      for (const int cap : {0, 1, 3}) {
        try {
          const Orders listed = plan::list_schedule(orders, costs, {rule.priority, cap});
          CHECK(same_work(listed, orders));
          CHECK((cap == 0 || most_live(listed) <= cap));
          CHECK_NOTHROW(weave(listed));
        } catch (const infeasible&) {
          // Only where one microbatch may keep more than the cap.
          CHECK(std::ranges::any_of(std::views::iota(0, ranks), [&](int rank) {
            return std::ranges::count(place, static_cast<std::size_t>(rank)) > cap;
          }));
          CHECK(cap > 0);
          ++dead_ends;
        }
      }
    }
  }
  CHECK(dead_ends > 0);
}

TEST_CASE("activations are counted as told: a heavy stage fills the cap alone") {
  // Stages 0 and 1 on one rank keep 3 and 1: under a cap of 4 one microbatch at a time.
  Orders orders{"weights", {{}}, StageGraph::chain(2)};
  for (const Kind kind : {F, B})
    for (int m = 0; m < 3; ++m)
      for (int s = 0; s < 2; ++s) orders.ranks[0].push_back(order(kind, kind == F ? s : 1 - s, m));
  const Orders listed =
      plan::list_schedule(orders, {.forward = 1, .backward = 1}, {plan::forward_first, 4, {3, 1}});
  CHECK(to_string(listed) == "0F0,1F0,1B0,0B0,0F1,1F1,1B1,0B1,0F2,1F2,1B2,0B2\n");
  CHECK(schedule::live_activations(listed, {3, 1}) == std::vector<std::int64_t>{4});
  CHECK(schedule::live_activations(orders, {3, 1}) == std::vector<std::int64_t>{12});
  CHECK(schedule::live_activations(orders) == std::vector<std::int64_t>{6});
}

TEST_CASE("without backwards nothing is kept, and a cap holds nobody back") {
  const Orders stream = schedule::stream(3, 7);
  CHECK(plan::list_schedule(stream, {.forward = 1}, {.cap = 1}) == stream);
  CHECK(schedule::live_activations(stream) == std::vector<std::int64_t>{0, 0, 0});
}

TEST_CASE("a dead end names the cap, the ranks and what they have no room for") {
  // Each rank holds one stage of either branch; under a cap of 1 both keep the wrong one: forwards
  // of the first stages, while the last stages, without which no backward begins, have no room.
  const Orders orders = schedule::flexpipe(2, 2);
  CHECK_THAT(test::message_of<infeasible>([&] {
               (void)plan::list_schedule(orders, {.forward = 1, .backward = 2}, {.cap = 1});
             }),
             ContainsSubstring("heddle::plan::list_schedule(FlexPipe P=2 M=2)") &&
                 ContainsSubstring("a dead end under the cap of 1 activations") &&
                 ContainsSubstring("rank 0 keeps 1 and has no room for ") &&
                 ContainsSubstring("rank 1 keeps 1 and has no room for ") &&
                 ContainsSubstring("raise the cap, or take another priority"));
}

TEST_CASE("the first order without room in a dead end is named as a cell, and marked") {
  try {
    (void)plan::list_schedule(schedule::flexpipe(2, 2), {.forward = 1, .backward = 2}, {.cap = 1});
    FAIL("nothing was thrown");
  } catch (const blocked_order& error) {
    CHECK(error.fault().rank == Rank{0});
    CHECK(error.fault().entry == 1);
    CHECK(error.complaint().why ==
          "rank 0, cell 2: '3F0', rank 0 keeps 1 and has no room for 3F0, "
          "rank 1 keeps 1 and has no room for 1F0");
    CHECK(error.grid() ==
          "cell     1      2\n"
          "rank 0   0F0  > 3F0 <\n"
          "rank 1   2F0    .\n");
  }
}

TEST_CASE("what cannot be list scheduled is refused") {
  const auto refusal = [](const Orders& orders, const plan::ListOptions& options = {}) {
    return test::message_of<contract_error>(
        [&] { (void)plan::list_schedule(orders, {.forward = 1, .backward = 2}, options); });
  };
  Orders orders = schedule::gpipe(1, 2);
  CHECK_THAT(refusal(orders, {.cap = -1}),
             ContainsSubstring("the cap on activations must be at least 0") &&
                 ContainsSubstring("cap = -1"));
  CHECK_THAT(refusal(orders, {.activations = {1, 1}}),
             ContainsSubstring("every stage needs a number of kept activations") &&
                 ContainsSubstring("2 numbers for 1 stages"));
  CHECK_THAT(refusal(orders, {.activations = {-1}}), ContainsSubstring("activations[0] = -1"));
  CHECK_THAT(test::message_of<contract_error>([&] {
               (void)plan::coordinate(orders, {.forward = 1, .backward = 2}, {.cap = -1});
             }),
             ContainsSubstring("heddle::plan::coordinate(GPipe P=1 M=2)") &&
                 ContainsSubstring("cap = -1"));
  CHECK_THAT(test::message_of<contract_error>([] {
               (void)plan::coordinate(schedule::gpipe(2, 1), {.forward = 1, .backward = 2},
                                      {.cap = 1, .activations = {1}});
             }),
             ContainsSubstring("every stage needs a number of kept activations") &&
                 ContainsSubstring("1 numbers, none for 1F0"));
  orders.ranks[0][1].fused = true;
  CHECK_THAT(refusal(orders),
             ContainsSubstring("orders with updates or fused pairs cannot be rescheduled") &&
                 ContainsSubstring("found 0F1, fused"));
  orders = schedule::gpipe(1, 1);
  orders.ranks[0].push_back({Kind::update, Stage{0}, Item{0}});
  CHECK_THAT(refusal(orders), ContainsSubstring("found 0UPDATE0"));
}

TEST_CASE("levels of stages, and a circle") {
  const StageGraph joined{4,
                          {{Stage{0}, Stage{1}},
                           {Stage{1}, Stage{3}},
                           {Stage{0}, Stage{3}},
                           {Stage{2}, Stage{3}},
                           {Stage{3}, Stage{2}, B}}};
  CHECK(heddle::impl::stage_levels(joined) == std::vector<int>{0, 1, 0, 2});
  CHECK(heddle::impl::stage_levels(StageGraph::chain(5)) == std::vector<int>{0, 1, 2, 3, 4});
  CHECK(heddle::impl::stage_levels({}).empty());
  StageGraph circle = StageGraph::chain(4);
  circle.edges.push_back({Stage{2}, Stage{1}});
  CHECK_THAT(
      test::message_of<contract_error>([&] { (void)heddle::impl::stage_levels(circle); }),
      ContainsSubstring("the stage graph has a cycle") && ContainsSubstring("stages 1, 2, 3"));
  circle.edges.push_back({Stage{9}, Stage{1}});
  CHECK_THAT(test::message_of<contract_error>([&] { (void)heddle::impl::stage_levels(circle); }),
             ContainsSubstring("9 -> 1, stages 0 to 3"));
}

}  // namespace test_list_scheduling
