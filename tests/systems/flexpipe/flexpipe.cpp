// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors

// FlexPipe: where the branches lie, what waits for what, and what the coordinator finds. The
// numbers are exact: time is a rational.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <map>
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
#include <heddle/systems/flexpipe/flexpipe.hpp>

#include "support/complaint.hpp"
#include "support/rational.hpp"

namespace test_flexpipe {

using namespace heddle;
using Catch::Matchers::ContainsSubstring;
using Interaction = schedule::FlexpipeOptions::Interaction;
using test::Rational;

namespace {

using Exact = BasicStageCosts<Rational>;

/// The ends of all F and B of a timeline, by (kind, stage, microbatch); starts too.
template <class Time>
struct Times {
  explicit Times(const BasicTimeline<Time>& timeline) {
    for (std::size_t i = 0; i < timeline.schedule().size(); ++i) {
      const Action& action = timeline.schedule()[ActionId{i}];
      if (action.kind <= Kind::backward)
        span[{action.kind, action.stage.value, action.item.value}] = timeline.spans()[i];
    }
  }
  std::map<std::tuple<Kind, std::uint32_t, std::uint32_t>, BasicSpan<Time>> span;
};

}  // namespace

TEST_CASE("branches lie in opposite directions, each stage once") {
  for (const int ranks : {1, 2, 3, 4, 7}) {
    for (const int branches : {1, 2, 3}) {
      const Orders orders = schedule::flexpipe(ranks, 3, branches);
      std::vector<int> rank_of(static_cast<std::size_t>(ranks * branches), -1);
      for (int r = 0; r < ranks; ++r)
        for (const Order& order : orders.ranks[static_cast<std::size_t>(r)])
          rank_of[+order.stage] = r;
      for (int b = 0; b < branches; ++b)
        for (int s = 0; s < ranks; ++s)
          CHECK(rank_of[static_cast<std::size_t>(b * ranks + s)] ==
                (b % 2 == 0 ? s : ranks - 1 - s));
      // weave() checks the rest: every stage on one rank, every microbatch finished.
      const Schedule woven = weave(orders, {.parameters = 7});
      // No weights twice: a rank holds one stage of each branch.
      Bytes weights = 0;
      for (const Buffer& buffer : woven.buffers())
        if (woven[buffer.label] == role::weights) weights += buffer.bytes;
      CHECK(weights == static_cast<Bytes>(7 * ranks * branches));
    }
  }
}

TEST_CASE("the joint loss: no branch goes back before the others have arrived") {
  const int ranks = 4;
  const int branches = 3;
  for (const auto& interactions : {std::vector<Interaction>{}, {{0, 1, 1, 1}, {1, 2, 2, 1}}}) {
    const Orders orders = schedule::flexpipe(ranks, 5, branches, interactions);
    const auto timeline =
        simulate(weave(orders), Exact{.forward = 1, .backward = 2, .latency = {1, 3}});
    const Times times(timeline);
    const auto at = [&](Kind kind, int branch, int stage, std::uint32_t m) {
      return times.span.at({kind, static_cast<std::uint32_t>(branch * ranks + stage), m});
    };
    for (std::uint32_t m = 0; m < 5; ++m) {
      for (int b = 0; b < branches; ++b)
        for (int other = 0; other < branches; ++other)
          CHECK(!(at(Kind::backward, b, ranks - 1, m).start <
                  at(Kind::forward, other, ranks - 1, m).end));
      for (const auto& [from, s, to, t] : interactions) {
        CHECK(!(at(Kind::forward, to, t, m).start < at(Kind::forward, from, s, m).end));
        CHECK(!(at(Kind::backward, from, s, m).start < at(Kind::backward, to, t, m).end));
      }
    }
  }
}

TEST_CASE(
    "the coordinator reaches the bubble (D - 2)(F + B) / 4 of two balanced branches, exactly") {
  // F and B of both branches together are 1 and 2; Chimera's bubble is (D - 2) B.
  const Exact costs{.forward = {1, 2}, .backward = 1};
  for (const int d : {2, 4, 6, 8, 16}) {
    const auto found = systems::flexpipe({.ranks = d, .microbatches = d}, costs, 2 * d);
    INFO(d << " ranks, " << found.rule);
    CHECK(found.makespan == Rational(3 * d) + Rational(3 * (d - 2), 4));
    CHECK(found.makespan == simulate(weave(found.orders), costs).makespan());
    CHECK(found.live <= 2 * d);
    CHECK(found.extra == 0);
  }
}

TEST_CASE("an interaction costs what the branches wait for: 30 at stage 2, 29 at stage 4") {
  for (const auto& [stage, expected] : {std::pair{2, 30}, {4, 29}}) {
    const auto found =
        systems::flexpipe({.ranks = 8, .microbatches = 8, .interactions = {{0, stage, 1, stage}}},
                          Exact{.forward = {1, 2}, .backward = 1}, 16);
    CHECK(found.makespan == Rational(expected));
    CHECK(found.dead_ends == 0);  // half the cap is enough for any rule that looks ahead
    CHECK(found.tried > 0);
  }
}

TEST_CASE("a cap that no order keeps is raised, and the extra memory reported") {
  const schedule::FlexpipeOptions options{
      .ranks = 4, .microbatches = 8, .interactions = {{0, 2, 1, 2}}};
  const auto free = systems::flexpipe(options, {.forward = 0.5, .backward = 1});
  CHECK(free.extra == 0);
  // A microbatch keeps two activations on every rank.
  const auto tight = systems::flexpipe(options, {.forward = 0.5, .backward = 1}, 1);
  CHECK(tight.dead_ends > 0);
  CHECK(tight.extra == 1);
  CHECK(tight.extra == tight.live - 1);
  CHECK(tight.live < free.live);
  CHECK(tight.makespan >= free.makespan);
  const auto live = schedule::live_activations(tight.orders);
  CHECK(tight.live == *std::max_element(live.begin(), live.end()));
  CHECK(tight.orders.graph == free.orders.graph);
}

TEST_CASE("unequal branches, counted by what they keep") {
  const auto found =
      systems::flexpipe({.ranks = 4, .microbatches = 5}, {.forward = 0.5, .backward = 1}, 40,
                        {7, 7, 7, 7, 3, 3, 3, 3});
  const auto live = schedule::live_activations(found.orders, {7, 7, 7, 7, 3, 3, 3, 3});
  CHECK(found.live == *std::max_element(live.begin(), live.end()));
  CHECK(found.live <= 40);
}

TEST_CASE("no candidate beats what is reported, and the given orders are one of them") {
  const Orders chain = schedule::one_f_one_b(4, 7);
  const auto found = plan::coordinate(chain, {.forward = 1, .backward = 2}, {.cap = 4});
  CHECK(found.makespan == (7 + 3) * 3);  // what 1F1B takes, and nothing within its memory beats
  // Without rules, the schedules of the catalogue with the same computations.
  const auto given = plan::coordinate(chain, {.forward = 1, .backward = 2}, {.rules = {}});
  CHECK(given.orders == chain);
  CHECK(given.rule == "as given");
  CHECK(found.tried == 10 * 3 + given.tried);  // caps 2, 2 and 3 of 4, and 4
  for (const plan::Rule& rule : plan::standard_rules()) {
    try {
      const Orders listed =
          plan::list_schedule(chain, {.forward = 1, .backward = 2}, {rule.priority, 4});
      CHECK(simulate(weave(listed), {.forward = 1, .backward = 2}).makespan() >= found.makespan);
    } catch (const infeasible&) {
      FAIL("a chain has no dead ends");
    }
  }
}

TEST_CASE("what cannot be a model of branches is refused") {
  const auto refusal = [](int ranks, int microbatches, int branches,
                          const std::vector<Interaction>& interactions = {}) {
    return test::message_of<contract_error>(
        [&] { (void)schedule::flexpipe(ranks, microbatches, branches, interactions); });
  };
  CHECK_THAT(refusal(0, 1, 2),
             ContainsSubstring("a model needs at least one branch with at least one stage") &&
                 ContainsSubstring("ranks = 0, branches = 2"));
  CHECK_THAT(refusal(2, 1, 0), ContainsSubstring("ranks = 2, branches = 0"));
  CHECK_THAT(refusal(2, 0, 2), ContainsSubstring("a step needs at least one microbatch") &&
                                   ContainsSubstring("microbatches = 0"));
  for (const Interaction& wrong : {Interaction{0, 0, 0, 1}, Interaction{0, 2, 1, 0},
                                   Interaction{0, 0, 2, 0}, Interaction{-1, 0, 1, 0}})
    CHECK_THAT(refusal(2, 1, 2, {wrong}),
               ContainsSubstring("an interaction must connect existing stages of two branches") &&
                   ContainsSubstring("with 2 branches of 2 stages"));
  CHECK_THAT(
      refusal(2, 1, 2, {{0, 1, 1, 0}, {1, 1, 0, 0}}),
      ContainsSubstring("the stage graph has a cycle") && ContainsSubstring("stages 0, 1, 2, 3"));
}

}  // namespace test_flexpipe
