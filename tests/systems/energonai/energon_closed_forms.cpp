// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors

#include <algorithm>
#include <cstdint>
#include <utility>

#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>

#include <heddle/schedule.hpp>
#include <heddle/simulate.hpp>
#include <heddle/simulate/any_time.hpp>
#include <heddle/systems/energonai/energon.hpp>

#include "support/complaint.hpp"
#include "support/rational.hpp"
#include "support/schedule_battery.hpp"

namespace test_energon_closed_forms {

using namespace heddle;
using Catch::Matchers::ContainsSubstring;
using test::Rational;

namespace {

constexpr Bytes message = 1000;

/// All requests through the pipeline; a stage takes one unit of time, a transfer `transfer`.
Rational makespan(int stages, int requests, int depth, const Rational& transfer) {
  const Schedule schedule = systems::energon(
      {.ranks = stages, .requests = requests, .depth = depth, .sizes = {.activation = message}});
  return simulate(schedule, BasicStageCosts<Rational>{.forward = 1, .per_byte = transfer / message})
      .makespan();
}

}  // namespace

TEST_CASE("a stage takes max(t, c) a request where it goes on, t + c where it waits for the send") {
  for (int s = 2; s <= 32; s = s < 9 ? s + 1 : s + 11) {
    for (const int m : {1, 2, 3, 7, 64, 101}) {
      for (const Rational c : {Rational(0), Rational(1, 10), Rational(1, 4), Rational(1), {5, 3}}) {
        const Rational once = Rational(s) + Rational(s - 1) * c;
        const Rational blocking = once + Rational(m - 1) * (Rational(1) + c);
        const Rational free = once + Rational(m - 1) * std::max(Rational(1), c);
        for (const auto& [depth, expected] : {std::pair{0, blocking}, {1, free}, {5, free}})
          if (const Rational found = makespan(s, m, depth, c); !(found == expected))
            FAIL("S=" << s << " M=" << m << " depth " << depth << " c=" << c << ": " << found
                      << " for " << expected);
      }
    }
  }
  for (const int depth : {0, 1}) CHECK(makespan(1, 9, depth, 7) == 9);
}

TEST_CASE("what it brings to go on: 1.23 of the bound 1.25 at c = t/4, 1.09 of 1.10 at c = t/10") {
  const auto gain = [](const Rational& c) { return makespan(4, 64, 0, c) / makespan(4, 64, 1, c); };
  CHECK(gain({1, 4}) == Rational(334, 271));
  CHECK(gain({1, 10}) == Rational(736, 673));
}

TEST_CASE("a blocking stage has one place for results, and the pipeline passes the battery") {
  for (const int depth : {0, 1, 3}) {
    const Schedule pipeline = systems::energon({.ranks = 3, .requests = 8, .depth = depth});
    for (const Buffer& buffer : pipeline.buffers())
      if (pipeline[buffer.label] == role::output)
        CHECK(buffer.parts == static_cast<std::uint32_t>(depth + 1));
    for (const int stages : {1, 2, 4})
      for (const int requests : {1, 2, 5})
        test::schedule_battery(
            systems::energon({.ranks = stages, .requests = requests, .depth = depth}));
  }
}

TEST_CASE("a depth below zero and counts below one are refused") {
  CHECK_THAT(test::message_of<contract_error>(
                 [] { (void)systems::energon({.ranks = 2, .requests = 2, .depth = -1}); }),
             ContainsSubstring("heddle::systems::energon") && ContainsSubstring("depth = -1") &&
                 ContainsSubstring("0 is a blocking send"));
  CHECK_THAT(
      test::message_of<contract_error>([] { (void)systems::energon({.ranks = 2, .requests = 0}); }),
      ContainsSubstring("microbatches = 0"));
}

}  // namespace test_energon_closed_forms
