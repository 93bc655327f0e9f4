// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors

// Rounds of local steps, simulated: an average that is one round late hides behind the local steps,
// exact on rationals; without the delay nothing hides; and what the ring sends.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>

#include <heddle/core/text.hpp>
#include <heddle/simulate/any_time.hpp>
#include <heddle/simulate/costs.hpp>
#include <heddle/simulate/simulate.hpp>
#include <heddle/systems/co2/local_steps.hpp>

#include "support/complaint.hpp"
#include "support/rational.hpp"

namespace test_local_steps_closed_forms {

using namespace heddle;
using schedule::Algorithm;
using test::Rational;

namespace {

constexpr Bytes block = 16;

/// The time of `rounds` rounds: a local step takes c, the all-reduce A, an update u.
Rational time_of(const systems::LocalStepsOptions& options, Rational c, Rational a, Rational u) {
  // A ring of P blocks makes 2 (P - 1) hops of one block each.
  const std::int64_t hops = 2 * (options.ranks - 1);
  BasicStageCosts<Rational> costs;
  costs.update = u;
  costs.user = c;
  costs.latency = hops == 0 ? Rational(0) : a / Rational(2 * hops);
  costs.per_byte = hops == 0 ? Rational(0) : a / Rational(2 * hops * std::int64_t{block});
  return simulate(systems::local_steps(options), costs).makespan();
}

}  // namespace

TEST_CASE("a late average takes max(steps c, A + u) + u a round, one in time steps c + A + 3 u") {
  const Rational u(1, 7);
  for (const int ranks : {1, 2, 3, 4, 8})
    for (const int steps : {1, 2, 4, 12, 48})
      for (const int rounds : {1, 3})
        for (const Rational a : {Rational(0), Rational(1, 2), Rational(4), Rational(957, 100)}) {
          systems::LocalStepsOptions options{.ranks = ranks, .steps = steps, .rounds = rounds};
          options.bytes = block * static_cast<Bytes>(ranks);
          const Rational sum = ranks == 1 ? Rational(0) : a;
          const Rational work(steps);
          const Rational n(rounds);
          CAPTURE(ranks, steps, rounds);
          CHECK(time_of(options, 1, a, u) == n * (std::max(work, sum + u) + u));
          options.delay = 0;
          CHECK(time_of(options, 1, a, u) == n * (work + sum + u + u + u));
        }
}

TEST_CASE("the rounds of the sum stand evenly between the local steps") {
  // 2 (P - 1) = 6 rounds over 12 steps: two steps behind every round.
  const Schedule list = systems::local_steps({.ranks = 4, .steps = 12, .bytes = 4 * block});
  std::size_t steps = 0;
  std::size_t moves = 0;
  for (std::size_t i = 0; i < list.size(); ++i) {
    const Action& action = list[ActionId{i}];
    if (action.kind == Kind::user && list[action.queue].from == Rank{0}) ++steps;
    // What a round of messages brings is merged two steps later, before the next round.
    if (action.kind == Kind::combine) CHECK(steps == (moves / 4) * 2);
    if (action.kind != Kind::move) continue;
    CHECK(steps == moves / 4 * 2);
    CHECK(list.bytes(list.uses(ActionId{i})[0]) == block);
    ++moves;
  }
  CHECK(steps == 12);
  CHECK(moves == 6 * 4);
}

TEST_CASE("every algorithm overlaps, and wrong options are named") {
  for (const Algorithm algorithm :
       {Algorithm::direct, Algorithm::bidirectional_ring, Algorithm::recursive_halving}) {
    const Schedule list =
        systems::local_steps({.ranks = 4, .steps = 8, .algorithm = algorithm, .bytes = 8 * block});
    BasicStageCosts<Rational> costs;
    costs.user = 1;
    costs.latency = Rational(1, 100);
    CHECK(simulate(list, costs).makespan() == Rational(8));
  }
  using Catch::Matchers::ContainsSubstring;
  CHECK_THAT(test::message_of<contract_error>([] { (void)systems::local_steps({.steps = 0}); }),
             ContainsSubstring("steps = 0"));
  CHECK_THAT(test::message_of<contract_error>([] { (void)systems::local_steps({.delay = 2}); }),
             ContainsSubstring("delay = 2"));
  CHECK_THAT(test::message_of<contract_error>([] { (void)systems::local_steps({.bytes = 12}); }),
             ContainsSubstring("12 bytes, elements of 8"));
  CHECK_THAT(test::message_of<infeasible>([] {
               (void)systems::local_steps(
                   {.ranks = 4, .algorithm = Algorithm::recursive_doubling, .bytes = 64});
             }),
             ContainsSubstring("no reduce_scatter of 4 ranks by recursive_doubling"));
}

TEST_CASE("a rank stores two numbers a parameter, and two more for each one of its block") {
  const Schedule list = systems::local_steps({.ranks = 3, .steps = 4, .bytes = 10 * 8});
  std::vector<Bytes> kept(3);
  for (const Buffer& buffer : list.buffers())
    if (!buffer.transient) kept[+buffer.rank] += buffer.bytes;
  CHECK(kept == std::vector<Bytes>{(20 + 8) * 8, (20 + 6) * 8, (20 + 6) * 8});
}

}  // namespace test_local_steps_closed_forms
