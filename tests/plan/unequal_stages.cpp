// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors

// List, then fill, rounds, then swap: for zero-bubble pipelines with unequal stages no longer than
// the heuristic of the zero-bubble authors.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

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
  const auto found = plan::coordinate(orders, costs, {.cap = cap, .swaps = 500});
  INFO(found.rule);
  CHECK(found.extra == 0);
  CHECK(found.live <= cap);
  CHECK(found.makespan == simulate(weave(found.orders), costs).makespan());
  CHECK(found.makespan <= theirs);
}

/// The least makespan that the heuristic finds with the activations of `activations` on a stage, or
/// 0 if it does not apply.
double least_of_rounds(const Orders& orders, const StageCosts& costs, std::int64_t cap,
                       const std::vector<std::int64_t>& activations = {}) {
  schedule::FillOptions options = plan::impl::fill_options(weave(orders), costs);
  options.cap = cap;
  options.activations = activations;
  double least = 0;
  plan::impl::try_rounds(orders, options, [&](const Orders& found, const std::string& rule) {
    INFO(found.name << ", " << rule);
    CHECK(std::ranges::max(schedule::live_activations(found, activations)) <= cap);
    const double makespan = simulate(weave(found), costs).makespan();
    if (least == 0 || makespan < least) least = makespan;
  });
  return least;
}

}  // namespace

TEST_CASE("no longer than the authors' H1 and H2 for 99 pipelines with unequal stages") {
  for (const test::UnequalStages& stages : test::unequal_stages) {
    const auto ranks = static_cast<int>(stages.forward.size());
    const TableCosts costs = costs_of(stages);
    check(schedule::zb_h1(ranks, stages.microbatches), costs, ranks, stages.h1);
    check(schedule::zb_h2(ranks, stages.microbatches), costs, 2 * ranks, stages.h2);
  }
}

TEST_CASE("rounds of equal stages take as long as ZB-H1, within the activations of each stage") {
  const StageCosts unit{.forward = 1, .backward_input = 1, .backward_weight = 1};
  for (const int p : {1, 2, 3, 5, 8})
    for (const int m : {p, 2 * p, 3 * p + 1}) {
      const Orders h1 = schedule::zb_h1(p, m);
      CHECK(least_of_rounds(h1, unit, p) == simulate(weave(h1), unit).makespan());
    }
  // Three activations of stage 0 and two of stage 1 fill 4 with one microbatch on rank 0.
  CHECK(least_of_rounds(schedule::zb_h1(2, 4), unit, 4, {3, 2}) > 0);
}

TEST_CASE("rounds do not apply to two stages on a rank, to whole backwards and without room") {
  const StageCosts unit{.forward = 1, .backward_input = 1, .backward_weight = 1, .backward = 2};
  CHECK(least_of_rounds(schedule::v_min(2, 4), unit, 4) == 0);
  CHECK(least_of_rounds(schedule::one_f_one_b(3, 4), unit, 3) == 0);
  CHECK(least_of_rounds(schedule::zb_h1(2, 4), unit, 2, {3, 1}) == 0);
}

TEST_CASE("a list starts what is there, 1F1B lets a rank wait for a backward") {
  const TableCosts costs = costs_of({3, 0, {14, 9, 11}, {17, 12, 13}, {9, 9, 5}, 0, 0});
  const auto found = plan::coordinate(schedule::zb_h2(3, 3), costs, {.cap = 6});
  CHECK(found.makespan == 137);
  CHECK(found.rule.starts_with("1f1b, then gaps"));
}

}  // namespace test_unequal_stages
