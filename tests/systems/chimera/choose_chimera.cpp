// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors

#include <string>
#include <utility>

#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>

#include <heddle/plan.hpp>
#include <heddle/schedule.hpp>
#include <heddle/simulate.hpp>
#include <heddle/simulate/any_time.hpp>
#include <heddle/systems/chimera/choose_chimera.hpp>

#include "support/complaint.hpp"
#include "support/rational.hpp"

namespace test_choose_chimera {

using namespace heddle;
using Catch::Matchers::ContainsSubstring;
using systems::choose_chimera;
using test::Rational;

namespace {

using ExactCosts = BasicStageCosts<Rational>;

Rational plain(int stages, int microbatches, const ExactCosts& costs) {
  return simulate(schedule::one_f_one_b({.ranks = stages, .microbatches = microbatches}), costs)
      .makespan();
}

}  // namespace

TEST_CASE("what is chosen is never slower than 1F1B, nor than any variant that fits") {
  for (const int d : {2, 4, 6, 8})
    for (const int n : {1, 2, 3, 5, 8, 16, 31, 32})
      for (const Rational backward : {Rational(1, 2), Rational(1), Rational(2), Rational(7, 2)})
        for (const Rational latency : {Rational(0), Rational(1, 4), Rational(2)})
          for (const bool may_halve : {false, true}) {
            const ExactCosts costs{.forward = 1, .backward = backward, .latency = latency};
            const auto chosen =
                choose_chimera({.ranks = d, .microbatches = n, .may_halve = may_halve}, costs);
            const Rational one = plain(d, n, costs);
            if (one < chosen.makespan)
              FAIL("D=" << d << " N=" << n << " B=" << backward << " c=" << latency << ": "
                        << chosen.orders.name << " takes " << chosen.makespan << ", 1F1B " << one);
            for (const bool doubles : {false, true})
              REQUIRE(!(simulate(schedule::chimera(
                                     {.ranks = d, .microbatches = n, .double_forwards = doubles}),
                                 costs)
                            .makespan() < chosen.makespan));
            REQUIRE((may_halve || !chosen.halved));
            if (chosen.halved) continue;
            REQUIRE(simulate(weave(chosen.orders), costs).makespan() == chosen.makespan);
          }
}

TEST_CASE("every variant has its case") {
  const ExactCosts twice{.forward = 1, .backward = 2};
  // Halves fill the bubble best where they may be made: 28.5 where direct concatenation takes 36.
  const auto halved = choose_chimera({.ranks = 8, .microbatches = 8}, twice);
  CHECK(halved.halved);
  CHECK(halved.makespan == Rational(57, 2));
  CHECK(halved.orders.ranks == schedule::chimera(8, 16, 1, true).ranks);
  // In the memory that direct concatenation takes.
  CHECK(choose_chimera({.ranks = 8, .microbatches = 8, .most_live = 8}, twice).halved);

  const auto direct = choose_chimera({.ranks = 8, .microbatches = 8, .may_halve = false}, twice);
  CHECK(direct.makespan == 36);
  CHECK(direct.orders == schedule::chimera(8, 8));

  const auto doubled = choose_chimera({.ranks = 8, .microbatches = 32, .may_halve = false}, twice);
  CHECK(doubled.makespan == 105);
  CHECK(doubled.orders == schedule::chimera(8, 32, 1, true));

  // Without memory for doubled forwards only direct concatenation is left, and loses: 126.
  const auto narrow =
      choose_chimera({.ranks = 8, .microbatches = 32, .may_halve = false, .most_live = 8}, twice);
  CHECK(narrow.makespan == 117);
  CHECK(narrow.orders == schedule::one_f_one_b(8, 32));

  // The sum over the copies can cost more than the bubble does.
  const ExactCosts dear{.forward = 1, .backward = 2, .group = 100};
  CHECK(choose_chimera({.ranks = 8, .microbatches = 8}, dear).makespan == 45);
}

TEST_CASE(
    "at equal memory the concatenated order can be mended: 52, 108, 220 at N = 4D and B = 2F") {
  for (const auto& [d, mended] : {std::pair{4, 52}, {8, 108}, {16, 220}}) {
    const auto found = plan::coordinate(schedule::chimera(d, 4 * d),
                                        ExactCosts{.forward = 1, .backward = 2}, {.cap = d});
    CHECK(found.makespan == mended);
    CHECK(found.extra == 0);
    CHECK(found.makespan < plain(d, 4 * d, {.forward = 1, .backward = 2}));
  }
}

TEST_CASE("a half microbatch has half the work and the bytes, but all of the latency") {
  const systems::ChimeraCase two{.ranks = 2, .microbatches = 1, .sizes = {.activation = 10}};
  // Down and up at once: F and B of half, a message of half, and the latency each way.
  const ExactCosts costs{.forward = 8, .backward = 16, .latency = 1, .per_byte = Rational(1, 10)};
  const auto chosen = choose_chimera(two, costs);
  REQUIRE(chosen.halved);
  CHECK(chosen.makespan < plain(2, 1, costs));
  const ExactCosts half{.forward = 4, .backward = 8, .latency = 1, .per_byte = Rational(1, 20)};
  CHECK(chosen.makespan == simulate(weave(chosen.orders, {.activation = 10}), half).makespan());
  const ExactCosts updated{
      .forward = 8, .backward = 16, .update = 5, .latency = 1, .per_byte = Rational(1, 10)};
  // Each of the two stages of a rank is updated as a whole.
  CHECK(choose_chimera(two, updated).makespan == chosen.makespan + 10);
}

TEST_CASE("no memory for any candidate, and an odd number of stages, are infeasible") {
  const StageCosts costs{.forward = 1, .backward = 2};
  CHECK_THAT(test::message_of<infeasible>([&] {
               (void)choose_chimera({.ranks = 4, .microbatches = 3, .most_live = 2}, costs);
             }),
             ContainsSubstring("heddle::systems::choose_chimera") &&
                 ContainsSubstring("no candidate fits in memory") &&
                 ContainsSubstring("most live = 2") && ContainsSubstring("1F1B needs 3"));
  CHECK_THAT(test::message_of<infeasible>(
                 [&] { (void)choose_chimera({.ranks = 3, .microbatches = 3}, costs); }),
             ContainsSubstring("use 2 or 4 stages"));
  CHECK_THAT(test::message_of<contract_error>([&] {
               (void)choose_chimera({.ranks = 4, .microbatches = 3, .most_live = -1}, costs);
             }),
             ContainsSubstring("most_live must be at least 1 microbatch") &&
                 ContainsSubstring("most live = -1"));
}

}  // namespace test_choose_chimera
