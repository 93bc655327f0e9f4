// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors

// Checks that the memory of every tier is compared with its capacity, and what the error says.

#include <cstddef>
#include <string>
#include <vector>

#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>

#include <heddle/machine/machine.hpp>
#include <heddle/schedule/capacity.hpp>
#include <heddle/schedule/generator/pipeline.hpp>
#include <heddle/schedule/generator/prefetch_window.hpp>
#include <heddle/simulate/costs.hpp>
#include <heddle/simulate/simulate.hpp>

#include "support/complaint.hpp"

namespace test_capacity {

using namespace heddle;
using Catch::Matchers::ContainsSubstring;

namespace {

Machine machine_of(int ranks, Bytes fast, Bytes slow) {
  return Machine::uniform(
      ranks, {.memories = {{"HBM", fast}, {"DDR", slow, {.latency = 0, .bandwidth = 1}}}}, {});
}

Timeline pipeline(int stages) {
  return simulate(
      schedule::one_f_one_b(
          {.ranks = stages, .microbatches = 6, .sizes = {.saved = 100, .parameters = 1000}}),
      {.forward = 1, .backward = 2});
}

}  // namespace

TEST_CASE("a window fits exactly in its slots, and lacks what is taken from either tier") {
  const std::vector<Bytes> objects = {3, 5, 3, 5, 3, 5};
  const Machine enough = machine_of(1, 11, 24);
  const Schedule schedule = schedule::prefetch_window({.objects = objects, .window = 3});
  const Timeline timeline = simulate(schedule, {.forward = 9}, enough, Sending::rendezvous);
  // What lives is less than the slots: 3 + 5 + 3, then 5 + 3 + 5.
  const auto curves = heddle::impl::memory_by_tier(timeline);
  REQUIRE((curves.size() == 1 && curves[0].size() == 2));
  CHECK((schedule::peak(curves[0][0]).bytes == 13 && schedule::peak(curves[0][1]).bytes == 24));
  CHECK_FALSE(heddle::impl::capacity_excess(timeline, machine_of(1, 13, 24)));
  CHECK_FALSE(heddle::impl::capacity_excess(timeline, machine_of(1, 0, 0)));
  CHECK_FALSE(heddle::impl::capacity_excess(timeline, Machine::uniform(1, {}, {})));
  const auto fast = heddle::impl::capacity_excess(timeline, enough);
  REQUIRE(fast);
  CHECK((fast->tier == 0 && fast->rank == 0 && fast->needed == 13 && fast->capacity == 11));
  // Two objects are used, and the fourth one is loaded: its slot is free when the first use ends.
  CHECK(fast->at == timeline.spans()[4].start);
  CHECK(fast->action == ActionId{4});
  CHECK(schedule[ActionId{4}].kind == Kind::move);
  const auto slow = heddle::impl::capacity_excess(timeline, machine_of(1, 11, 20));
  REQUIRE(slow);
  CHECK((slow->tier == 1 && slow->needed == 24 && slow->capacity == 20));
  const std::string what = test::message_of<infeasible>(
      [&] { schedule::check_capacity(timeline, machine_of(1, 11, 24)); });
  CHECK_THAT(what, ContainsSubstring("tier 0 ('HBM') of rank 0") &&
                       ContainsSubstring("13 bytes live there; it has 11, so 2 bytes lack") &&
                       ContainsSubstring(schedule::action_text(schedule, ActionId{4}) + " begins"));
}

TEST_CASE("the rank that lacks most is named: the first one of 1F1B keeps most activations") {
  const Timeline timeline = pipeline(4);
  // Rank r: weights and gradients of 1000 each, and 4 - r activations of 100.
  CHECK_FALSE(heddle::impl::capacity_excess(timeline, machine_of(4, 2400, 0)));
  for (const Bytes capacity : {2399u, 2250u, 1u}) {
    const auto excess = heddle::impl::capacity_excess(timeline, machine_of(4, capacity, 0));
    REQUIRE(excess);
    CHECK((excess->rank == 0 && excess->tier == 0 && excess->needed == 2400));
    // The first backward begins after 4 forwards and 3 backwards, and makes the gradients.
    CHECK(excess->at == 4 + 3 * 2);
    REQUIRE(excess->action);
    CHECK(timeline.schedule()[*excess->action].kind == Kind::backward);
    CHECK(timeline.schedule()[*excess->action].item == 0);
  }
  Machine uneven = machine_of(4, 2400, 0);
  uneven.set_device(Rank{2}, {.memories = {{"small", 2000}}});
  const auto excess = heddle::impl::capacity_excess(timeline, uneven);
  REQUIRE(excess);
  CHECK((excess->rank == 2 && excess->needed == 2200));
}

TEST_CASE("a machine without the ranks or tiers of a schedule is refused") {
  CHECK_THAT(test::message_of<contract_error>(
                 [] { schedule::check_capacity(pipeline(4), machine_of(3, 0, 0)); }),
             ContainsSubstring("has 4 ranks, the machine 3"));
  const Timeline window =
      simulate(schedule::prefetch_window({.objects = {1, 2}, .window = 1}), StageCosts{});
  CHECK_THAT(
      test::message_of<contract_error>([&] {
        schedule::check_capacity(window, Machine::uniform(1, {.memories = {{"HBM", 5}}}, {}));
      }),
      ContainsSubstring("rank 0 has no tier 1") && ContainsSubstring("'weights' lies there"));
}

}  // namespace test_capacity
