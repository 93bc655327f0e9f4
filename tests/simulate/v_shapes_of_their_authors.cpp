// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors

// V-half and V-min against the orders of their authors' scheduler: no rank keeps more activations,
// and no bubble is longer, whether F, I and W are equal or not.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <iostream>
#include <span>
#include <utility>
#include <vector>

#include <catch2/catch_test_macros.hpp>

#include <heddle/plan/solver/coordinate.hpp>
#include <heddle/schedule.hpp>
#include <heddle/simulate.hpp>
#include <heddle/simulate/any_time.hpp>

#include "support/cases.hpp"
#include "support/repeated_v_shapes.hpp"
#include "support/v_shapes.hpp"

namespace test_v_shapes_of_their_authors {

using namespace heddle;

namespace {

BasicStageCosts<std::int64_t> costs_of(const test::VCosts& costs) {
  return {.forward = costs.forward, .backward_input = costs.input, .backward_weight = costs.weight};
}

std::int64_t work(int microbatches, const test::VCosts& costs) {
  return 2 * microbatches * (costs.forward + costs.input + costs.weight);
}

std::int64_t bubble(const Schedule& schedule, int microbatches, const test::VCosts& costs) {
  return simulate(schedule, costs_of(costs)).makespan() - work(microbatches, costs);
}

/// Counts the settings in which the V that coordinate() chooses was compared with the references.
struct Coverage {
  int settings = 0;         ///< in the authors' memory
  int beside_repeated = 0;  ///< of these, with a repeated passage that keeps no more
  int more = 0;             ///< in the memory of a repeated passage that keeps more
  int below_authors = 0;    ///< in the authors' memory, shorter than theirs
  int below_repeated = 0;   ///< shorter than the repeated passage, in its memory
  int longer = 0;           ///< longer than a reference, must be 0

  void compare(const test::VShape& authors, const test::RepeatedV& repeated,
               Orders (*generator)(int, int)) {
    REQUIRE(authors.ranks == repeated.ranks);
    REQUIRE(authors.microbatches == repeated.microbatches);
    // The others take minutes: HEDDLE_LONG adds them.
    const bool few = authors.ranks <= 8 ||
                     (authors.ranks % 12 == 0 && authors.microbatches == 2 * authors.ranks);
    if (!few && test::cases(0, 1000) == 0) return;
    const Orders orders = generator(authors.ranks, authors.microbatches);
    for (std::size_t i = 0; i < test::v_costs.size(); ++i) {
      const auto best = [&](int cap) {
        const auto found =
            plan::coordinate(orders, costs_of(test::v_costs[i]), {.cap = cap, .rules = {}});
        CHECK(found.extra == 0);
        CHECK(found.live <= cap);
        UNSCOPED_INFO(orders.name << ", costs " << i << ", cap " << cap << ", " << found.rule
                                  << ": "
                                  << found.makespan - work(authors.microbatches, test::v_costs[i]));
        return found.makespan - work(authors.microbatches, test::v_costs[i]);
      };
      const auto ours = best(authors.live);
      ++settings;
      below_authors += ours < authors.bubbles[i];
      longer += ours > authors.bubbles[i];
      if (repeated.live <= authors.live) {
        ++beside_repeated;
        below_repeated += ours < repeated.bubbles[i];
        longer += ours > repeated.bubbles[i];
        continue;
      }
      ++more;
      const auto with_more = best(repeated.live);
      below_repeated += with_more < repeated.bubbles[i];
      longer += with_more > repeated.bubbles[i];
    }
  }
};

/// How many bubbles are longer than the authors'.
int longer(std::span<const test::VShape> published, Orders (*generator)(int, int)) {
  int count = 0;
  for (const test::VShape& shape : published) {
    const Orders orders = generator(shape.ranks, shape.microbatches);
    INFO(orders.name);
    const auto live = schedule::live_activations(orders);
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
  CHECK(longer(test::v_half_of_its_authors, schedule::v_half) == 0);
}

// The exception is P = 3, M = 3 and W = 2 F: 5 against 4, where it is 5 against 8 for W = F.
TEST_CASE("V-min keeps no more and idles no longer than its authors' but in one of 868 cases") {
  CHECK(longer(test::v_min_of_its_authors, schedule::v_min) == 1);
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
      const auto found = plan::coordinate(schedule::v_min(shape.ranks, shape.microbatches),
                                          costs_of(test::v_costs[i]), {.cap = shape.live});
      INFO(found.orders.name << ", costs " << i << ", " << found.rule);
      CHECK(found.extra == 0);
      CHECK(bubble(weave(found.orders), shape.microbatches, test::v_costs[i]) <= shape.bubbles[i]);
    }
  }
  CHECK(shapes == 6);
}

// The references are recorded: the bubbles of the authors, and those of the passages that repeat
// from the first to the last microbatch. Each counts within its own memory.
TEST_CASE("the V for given costs is no longer than its authors' and than a repeated passage") {
  Coverage half, min;
  for (std::size_t i = 0; i < test::v_half_of_its_authors.size(); ++i)
    half.compare(test::v_half_of_its_authors[i], test::repeated_v_half[i], schedule::v_half);
  for (std::size_t i = 0; i < test::v_min_of_its_authors.size(); ++i)
    min.compare(test::v_min_of_its_authors[i], test::repeated_v_min[i], schedule::v_min);
  for (const auto& [name, seen] : {std::pair{"V-half", half}, std::pair{"V-min", min}}) {
    std::cout << name << ": " << seen.settings << " settings, " << seen.beside_repeated
              << " with the repeated passage in the same memory, " << seen.more
              << " more in the memory of the passage; shorter than the authors in "
              << seen.below_authors << ", than the passage in " << seen.below_repeated << '\n';
    CHECK(seen.settings >= 210);
    CHECK(seen.beside_repeated > 0);
    CHECK(seen.more > 0);
    CHECK(seen.below_authors > 0);
    CHECK(seen.below_repeated > 0);
    CHECK(seen.longer == 0);
  }
}

// The passage of V-min gives 5, 71, 19, 203, 39, 35 and 5.
TEST_CASE("three ranks take V-half for V-min, because no rank keeps more") {
  for (const auto& [costs, expected] :
       {std::pair{test::VCosts{4, 5, 3}, 29}, std::pair{test::VCosts{1, 2, 1}, 17},
        std::pair{test::VCosts{2, 1, 1}, 16}, std::pair{test::VCosts{1, 1, 1}, 5}})
    CHECK(bubble(schedule::v_min({.ranks = 3, .microbatches = 9}), 9, costs) == expected);
  // With 2 and 5 ranks, rank 0 keeps one less in V-min than in V-half.
  CHECK(schedule::live_activations(schedule::v_min(2, 6)) == std::vector<std::int64_t>{3, 4});
  CHECK(schedule::live_activations(schedule::v_min(5, 10))[0] == 5);
}

TEST_CASE("the V for given costs has the computations of the given orders, and their name") {
  const Orders orders = schedule::v_min(2, 4);
  const auto costs = costs_of({2, 1, 1});
  const auto found = plan::coordinate(orders, costs, {.cap = 4, .rules = {}});
  CHECK(found.orders.name == orders.name);
  CHECK(found.makespan - work(4, {2, 1, 1}) == 2);
  CHECK(simulate(weave(orders), costs).makespan() - work(4, {2, 1, 1}) == 10);
  for (std::size_t rank = 0; rank < 2; ++rank)
    CHECK(std::ranges::is_permutation(found.orders.ranks[rank], orders.ranks[rank]));
}

TEST_CASE("V-half of few microbatches: 19 for P=2 M=3, 41 for P=4 M=6") {
  CHECK(bubble(schedule::v_half({.ranks = 2, .microbatches = 3}), 3, {1, 1, 1}) == 19 - 18);
  CHECK(bubble(schedule::v_half({.ranks = 4, .microbatches = 6}), 6, {1, 1, 1}) == 41 - 36);
}

}  // namespace test_v_shapes_of_their_authors
