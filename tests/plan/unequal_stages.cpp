// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors

// List, then fill, then swap: for zero-bubble pipelines with unequal stages no longer than the
// heuristic of the zero-bubble authors.

#include <cstddef>

#include <catch2/catch_test_macros.hpp>

#include <heddle/plan.hpp>
#include <heddle/schedule.hpp>
#include <heddle/simulate.hpp>

#include "support/unequal_stages.hpp"

namespace test_unequal_stages {

using namespace heddle;

namespace {

TableCosts costs_of(const test::UnequalStages& stages) {
  const auto ranks = static_cast<int>(stages.forward.size());
  TableCosts costs(
      Machine::uniform(ranks, {}, Link{.latency = double(stages.latency), .bandwidth = 1e30}),
      ranks);
  for (std::size_t s = 0; s < stages.forward.size(); ++s) {
    costs.at(Kind::forward, Stage{s}) = stages.forward[s];
    costs.at(Kind::backward_input, Stage{s}) = stages.input[s];
    costs.at(Kind::backward_weight, Stage{s}) = stages.weight[s];
  }
  return costs;
}

/// `orders`, coordinated, within `cap` and no longer than `theirs`.
void check(const Orders& orders, const TableCosts& costs, int cap, int theirs) {
  INFO(orders.name << " under " << cap);
  const auto found = plan::coordinate(orders, costs, {.cap = cap, .swaps = true});
  INFO(found.rule);
  CHECK(found.extra == 0);
  CHECK(found.live <= cap);
  CHECK(found.makespan == simulate(weave(found.orders), costs).makespan());
  CHECK(found.makespan <= theirs);
}

}  // namespace

TEST_CASE("no longer than the authors' H1 and H2 for 50 pipelines with unequal stages") {
  for (const test::UnequalStages& stages : test::unequal_stages) {
    const auto ranks = static_cast<int>(stages.forward.size());
    const TableCosts costs = costs_of(stages);
    check(schedule::zb_h1_orders(ranks, stages.microbatches), costs, ranks, stages.h1);
    check(schedule::zb_h2_orders(ranks, stages.microbatches), costs, 2 * ranks, stages.h2);
  }
}

TEST_CASE("a list starts what is there, a swap lets a rank wait for a backward") {
  // Rank 1 has a forward at 40 and a backward at 43; without the swap the backward starts at 51.
  const TableCosts costs = costs_of({3, 1, {13, 11, 8}, {15, 12, 8}, {9, 9, 6}, 0, 0});
  const Orders orders = schedule::zb_h2_orders(3, 3);
  const auto listed = plan::coordinate(orders, costs, {.cap = 6});
  const auto swapped = plan::coordinate(orders, costs, {.cap = 6, .swaps = true});
  CHECK(listed.makespan == 136);
  CHECK(swapped.makespan == 128);
  CHECK(swapped.rule == listed.rule + ", then swaps");
}

}  // namespace test_unequal_stages
