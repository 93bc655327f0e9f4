// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors

#include <algorithm>
#include <cstdint>
#include <string>

#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>

#include <heddle/schedule.hpp>
#include <heddle/simulate.hpp>
#include <heddle/simulate/any_time.hpp>

#include "support/complaint.hpp"
#include "support/rational.hpp"
#include "support/schedule_battery.hpp"

namespace test_two_bp_closed_forms {

using namespace heddle;
using Catch::Matchers::ContainsSubstring;
using test::Rational;

namespace {

using ExactCosts = BasicStageCosts<Rational>;

/// How much shorter a step is by 2BP.
Rational gain(const Orders& orders, const ExactCosts& costs) {
  return simulate(weave(orders), costs).makespan() /
         simulate(weave(schedule::two_bp(orders)), costs).makespan();
}

bool has_split_backward(const Orders& orders) {
  return std::ranges::any_of(orders.ranks, [](const auto& list) {
    return std::ranges::find(list, Kind::backward_input, &Order::kind) != list.end();
  });
}

}  // namespace

TEST_CASE("2BP's gain with F = I = W is that of its closed forms, exactly") {
  const ExactCosts costs{.forward = 1, .backward_input = 1, .backward_weight = 1};
  for (int n = 2; n <= 32; ++n) {
    INFO("N = " << n);
    CHECK(gain(schedule::one_f_one_b(n, 1), costs) == Rational(3 * n, 2 * n + 1));
    // One microbatch after the other: all W but the last one fit beside the next.
    for (const int m : {1, 2, 5})
      CHECK(gain(schedule::naive(n, m), costs) == Rational(3 * n * m, 2 * n * m + 1));
    CHECK(gain(schedule::gpipe(n, n), costs) == Rational(3 * (2 * n - 1), 5 * n - 2));
    CHECK(gain(schedule::one_f_one_b(n, n), costs) == Rational(3 * (2 * n - 1), 4 * n - 1));
    CHECK(gain(schedule::one_f_one_b(n, 2 * n), costs) == Rational(3 * (3 * n - 1), 7 * n - 1));
  }
}

TEST_CASE("no schedule of whole backward passes loses by 2BP, whatever a W takes") {
  int tried = 0;
  for (const schedule::NamedSchedule& entry : schedule::catalogue()) {
    if (!entry.synchronous) continue;
    const Orders orders = entry.orders({.ranks = 4, .microbatches = 8, .stages_per_rank = 2});
    if (has_split_backward(orders)) continue;
    ++tried;
    for (const Rational weights : {Rational(1, 2), Rational(1), Rational(8, 5)}) {
      const ExactCosts costs{.forward = 1, .backward_input = 1, .backward_weight = weights};
      const double w = weights < Rational(1) ? 0.5 : weights == Rational(1) ? 1 : 1.6;
      schedule::FillOptions options;
      options.price = [w](const Order& order) {
        return order.kind == Kind::backward ? 1 + w : order.kind == Kind::backward_weight ? w : 1;
      };
      const Orders delayed = schedule::two_bp(orders, options);
      CHECK(delayed.name == orders.name + " with 2BP");
      const Rational before = simulate(weave(orders), costs).makespan();
      const Rational after = simulate(weave(delayed), costs).makespan();
      if (before < after)
        FAIL(entry.name << " with W = " << weights << ": " << before << " to " << after);
    }
  }
  CHECK(tried >= 8);
}

TEST_CASE("2BP keeps more activations, within the cap it is given") {
  const Orders orders = schedule::one_f_one_b(4, 16);
  const auto peak = [](const Orders& each, int rank) {
    return schedule::peak(
               simulate(weave(each),
                        ExactCosts{.forward = 1, .backward_input = 1, .backward_weight = 1}),
               Rank{rank}, role::saved)
        .parts;
  };
  CHECK(peak(orders, 0) == 4);
  CHECK(peak(schedule::two_bp(orders), 0) == 16);
  for (const int cap : {4, 6, 10}) {
    schedule::FillOptions options;
    options.cap = cap;
    const Orders capped = schedule::two_bp(orders, options);
    for (int rank = 0; rank < 4; ++rank)
      CHECK(peak(capped, rank) <= static_cast<std::uint64_t>(cap));
    const ExactCosts costs{.forward = 1, .backward_input = 1, .backward_weight = 1};
    CHECK(simulate(weave(capped), costs).makespan() < simulate(weave(orders), costs).makespan());
  }
  schedule::FillOptions too_small;
  too_small.cap = 3;
  CHECK_THAT(test::message_of<infeasible>([&] { (void)schedule::two_bp(orders, too_small); }),
             ContainsSubstring("a cap of 3 activations is too small"));
}

TEST_CASE("2BP passes the battery on each of its schedules") {
  for (const int n : {1, 2, 3, 4})
    for (const int m : {1, 2, 5, 8})
      for (const Orders& orders : {schedule::gpipe(n, m), schedule::one_f_one_b(n, m)}) {
        const Orders delayed = schedule::two_bp(orders);
        test::schedule_battery(weave(
            delayed,
            {.activation = 24, .saved = 40, .delta = 32, .parameters = 16, .type = Scalar::f64}));
        // What is split already is filled in the same way.
        CHECK(schedule::two_bp(schedule::split_backward(orders)).ranks == delayed.ranks);
      }
  CHECK(to_string(schedule::two_bp(schedule::gpipe(2, 2))) ==
        "0F0,0F1,0I0,0I1,0W0,0W1\n1F0,1F1,1I0,1I1,1W0,1W1\n");
}

}  // namespace test_two_bp_closed_forms
