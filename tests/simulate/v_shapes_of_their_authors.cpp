// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors

// V-half and V-min against the orders of their authors' scheduler: no rank keeps more activations,
// and no bubble is longer, whether F, I and W are equal or not.

#include <cstddef>
#include <cstdint>
#include <span>

#include <catch2/catch_test_macros.hpp>

#include <heddle/plan/solver/coordinate.hpp>
#include <heddle/schedule.hpp>
#include <heddle/simulate.hpp>

#include "support/v_shapes.hpp"

namespace test_v_shapes_of_their_authors {

using namespace heddle;

namespace {

std::int64_t bubble(const Schedule& schedule, int microbatches, const test::VCosts& costs) {
  const auto [forward, input, weight] = costs;
  const auto makespan = simulate(schedule, BasicStageCosts<std::int64_t>{.forward = forward,
                                                                         .backward_input = input,
                                                                         .backward_weight = weight})
                            .makespan();
  return makespan - 2 * microbatches * (forward + input + weight);
}

/// How many bubbles are longer than the authors'.
template <class Generator>
int longer(std::span<const test::VShape> published, const Generator& generator) {
  int count = 0;
  for (const test::VShape& shape : published) {
    const Orders orders = generator(shape.ranks, shape.microbatches);
    INFO(orders.name);
    const auto live = live_activations(orders);
    REQUIRE(live.size() == static_cast<std::size_t>(shape.ranks));
    for (std::size_t rank = 0; rank < live.size(); ++rank) {
      INFO("rank " << rank);
      CHECK(live[rank] <= (rank == 0 ? shape.first_live : shape.live));
    }
    const Schedule schedule = weave(orders);
    for (std::size_t i = 0; i < test::v_costs.size(); ++i) {
      const auto ours = bubble(schedule, shape.microbatches, test::v_costs[i]);
      if (ours <= shape.bubbles[i]) continue;
      ++count;
      UNSCOPED_INFO(orders.name << ", costs " << i << ": " << ours << " against "
                                << shape.bubbles[i]);
    }
  }
  return count;
}

}  // namespace

TEST_CASE("V-half keeps no more and idles no longer than its authors' for P 2-32, M = P to 4P") {
  CHECK(longer(test::v_half_of_its_authors, schedule::v_half_orders) == 0);
}

// The exception is P = 3, M = 3 and W = 2 F: 5 against 4, where it is 5 against 8 for W = F.
TEST_CASE("V-min keeps no more and idles no longer than its authors' but in one of 868 cases") {
  CHECK(longer(test::v_min_of_its_authors, schedule::v_min_orders) == 1);
  const Schedule exception = schedule::v_min({.ranks = 3, .microbatches = 3});
  CHECK(bubble(exception, 3, {1, 1, 2}) == 5);
  CHECK(bubble(exception, 3, {1, 1, 1}) == 5);
}

// The orders of the generators do not depend on the costs, and coordinate() knows them.
TEST_CASE("coordinate() idles no longer than V-min's authors for P = 2-4, in their memory") {
  int shapes = 0;
  for (const test::VShape& shape : test::v_min_of_its_authors) {
    if (shape.ranks > 4 || shape.microbatches > 2 * shape.ranks) continue;
    ++shapes;
    for (std::size_t i = 0; i < test::v_costs.size(); ++i) {
      const auto [forward, input, weight] = test::v_costs[i];
      const auto found = plan::coordinate(
          schedule::v_min_orders(shape.ranks, shape.microbatches),
          BasicStageCosts<std::int64_t>{
              .forward = forward, .backward_input = input, .backward_weight = weight},
          {.cap = shape.live});
      INFO(found.orders.name << ", costs " << i << ", " << found.rule);
      CHECK(found.extra == 0);
      CHECK(bubble(weave(found.orders), shape.microbatches, test::v_costs[i]) <= shape.bubbles[i]);
    }
  }
  CHECK(shapes == 6);
}

TEST_CASE("V-half of few microbatches: 19 for P=2 M=3, 41 for P=4 M=6") {
  CHECK(bubble(schedule::v_half({.ranks = 2, .microbatches = 3}), 3, {1, 1, 1}) == 19 - 18);
  CHECK(bubble(schedule::v_half({.ranks = 4, .microbatches = 6}), 6, {1, 1, 1}) == 41 - 36);
}

}  // namespace test_v_shapes_of_their_authors
