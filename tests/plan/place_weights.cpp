// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors

#include <algorithm>
#include <initializer_list>
#include <string>
#include <vector>

#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>

#include <heddle/plan.hpp>
#include <heddle/schedule.hpp>
#include <heddle/simulate.hpp>

#include "support/complaint.hpp"

namespace test_place_weights {

using namespace heddle;
using Catch::Matchers::ContainsSubstring;

namespace {

std::vector<std::vector<Order>> without_weights(Orders orders) {
  for (auto& list : orders.ranks)
    std::erase_if(list, [](const Order& each) { return each.kind == Kind::backward_weight; });
  return orders.ranks;
}

/// A generator whose Orders depend on two numbers.
using Generator = Orders (*)(int, int);

Orders zb_v(int ranks, int microbatches) { return schedule::zb_v(ranks, microbatches); }

}  // namespace

TEST_CASE("where the generators' assumptions hold, their orders stay") {
  const StageCosts costs{.forward = 1, .backward_input = 1, .backward_weight = 1};
  for (const int p : {1, 2, 3, 4, 7}) {
    for (const Generator orders : std::initializer_list<Generator>{
             &zb_v, &schedule::v_half, &schedule::v_min, &schedule::zb_h1}) {
      const Orders given = orders(p, 3 * p);
      const auto placed = plan::place_weights(given, costs);
      INFO(given.name);
      CHECK(placed.rule == "as given");
      CHECK(placed.orders == given);
      CHECK(placed.makespan == simulate(weave(given), costs).makespan());
    }
  }
}

TEST_CASE("W in better places: never slower, no more activations, F and I in their order") {
  int better = 0;
  for (const int p : {2, 3, 4, 5}) {
    for (const int m : {1, p, 4 * p + 1}) {
      for (const StageCosts& costs :
           {StageCosts{.forward = 1, .backward_input = 1.25, .backward_weight = 0.75},
            StageCosts{.forward = 1, .backward_input = 0.75, .backward_weight = 1.25},
            StageCosts{.forward = 1, .backward_input = 1, .backward_weight = 1, .latency = 0.5},
            StageCosts{.forward = 1, .backward_input = 1}}) {
        for (const Generator orders : std::initializer_list<Generator>{
                 &zb_v, &schedule::v_half, &schedule::v_min, &schedule::zb_h1, &schedule::zb_h2}) {
          const Orders given = orders(p, m);
          const auto placed = plan::place_weights(given, costs);
          INFO(given.name << ", " << placed.rule);
          CHECK(without_weights(placed.orders) == without_weights(given));
          CHECK(std::ranges::max(schedule::live_activations(placed.orders)) <=
                std::ranges::max(schedule::live_activations(given)));
          const auto timeline = simulate(weave(placed.orders), costs);
          CHECK(timeline.makespan() == placed.makespan);
          const auto before = simulate(weave(given), costs).makespan();
          CHECK((placed.rule == "as given" ? placed.makespan == before : placed.makespan < before));
          better += placed.makespan < before;
        }
      }
    }
  }
  CHECK(better > 20);
}

TEST_CASE("V-half and transfers of half a forward need no new places, ZB-V with a long W does") {
  // 24 microbatches, 144 of work on every rank.
  const StageCosts transfers{
      .forward = 1, .backward_input = 1, .backward_weight = 1, .latency = 0.5};
  const auto half = plan::place_weights(schedule::v_half(4, 24), transfers);
  CHECK(half.rule == "as given");
  CHECK(half.makespan == 158);
  // W waits for gaps that hold none of it whole: only with any gap is the bubble that of F = I = W.
  const StageCosts long_w{.forward = 1, .backward_input = 0.75, .backward_weight = 1.25};
  const auto v = plan::place_weights(schedule::zb_v(4, 24), long_w);
  CHECK(v.rule == "gaps of at least 0 W");
  CHECK(v.makespan == 147);
}

TEST_CASE("stages of unequal costs, by a table") {
  TableCosts costs(Machine::uniform(3, {}, Link{.latency = 0.25, .bandwidth = 1e30}), 3);
  for (int s = 0; s < 3; ++s) {
    costs.at(Kind::forward, Stage{s}) = 1 + 0.25 * s;
    costs.at(Kind::backward_input, Stage{s}) = 1.5;
    costs.at(Kind::backward_weight, Stage{s}) = 1 - 0.25 * s;
  }
  const Orders given = schedule::zb_h1(3, 7);
  const auto placed = plan::place_weights(given, costs);
  CHECK(placed.makespan <= simulate(weave(given), costs).makespan());
  CHECK(placed.makespan == simulate(weave(placed.orders), costs).makespan());
}

TEST_CASE("orders that cannot be woven are refused as weave() does") {
  Orders orders = schedule::zb_h1(2, 2);
  std::ranges::reverse(orders.ranks[0]);
  CHECK_THAT(test::message_of<infeasible>([&] {
               (void)plan::place_weights(orders,
                                         {.forward = 1, .backward_input = 1, .backward_weight = 1});
             }),
             ContainsSubstring("an action comes before what it needs (0W1 before 0I1"));
}

}  // namespace test_place_weights
