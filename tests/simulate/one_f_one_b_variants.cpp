// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors

// Seq1F1B and 1F1B-V: closed forms, figures of their authors' programs, the battery, and what they
// refuse.

#include <algorithm>
#include <cstdint>
#include <vector>

#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>

#include <heddle/schedule.hpp>
#include <heddle/simulate.hpp>
#include <heddle/simulate/any_time.hpp>

#include "support/complaint.hpp"
#include "support/rational.hpp"
#include "support/schedule_battery.hpp"

namespace test_one_f_one_b_variants {

using namespace heddle;
using namespace heddle::schedule;
using Catch::Matchers::ContainsSubstring;
using test::Rational;
using ExactCosts = BasicStageCosts<Rational>;

namespace {

constexpr StageSizes sizes{.activation = 24, .saved = 40, .parameters = 16, .type = Scalar::f64};

Rational length(const Orders& orders, const ExactCosts& costs) {
  return simulate(weave(orders), costs).makespan();
}

void passes(const Orders& orders, int stages, int microbatches) {
  test::pipeline_battery(weave(orders, sizes), {orders, stages, microbatches, true, 24});
}

}  // namespace

TEST_CASE("Seq1F1B takes (M + P - 1)(F + B) of slices and keeps P - 1 - r + slices of them") {
  for (int p = 1; p <= 7; ++p)
    for (const int slices : {1, 2, 3, 4, 7})
      for (const int sequences : {1, 2, 3, 5, 8}) {
        const int m = slices * sequences;
        const Orders orders = seq_1f1b(p, m, slices);
        INFO(orders.name);
        const std::vector<std::int64_t> live = schedule::live_activations(orders);
        for (int r = 0; r < p; ++r)
          CHECK(live[static_cast<std::size_t>(r)] == std::min(m, p - 1 - r + slices));
        if (slices == 1) CHECK(orders.ranks == one_f_one_b(p, m).ranks);
        for (const auto& [f, b] : {std::pair<Rational, Rational>{1, 2}, {3, 2}})
          CHECK(length(orders, {.forward = f, .backward = b}) == Rational(m + p - 1) * (f + b));
      }
}

TEST_CASE("4 sequences of 4 slices on 4 ranks keep 7 slices, and 1F1B keeps 16") {
  CHECK(schedule::live_activations(seq_1f1b(4, 16, 4)).front() == 7);
  CHECK(4 * schedule::live_activations(one_f_one_b(4, 4)).front() == 16);
}

TEST_CASE("in Seq1F1B, no slice overtakes an earlier one, and backwards run from the last") {
  constexpr int slices = 3;
  for (const auto& list : seq_1f1b(4, 12, slices).ranks) {
    std::vector<std::vector<std::size_t>> done(2);
    for (const Order& order : list) done[order.kind != Kind::forward].push_back(+order.item);
    CHECK(std::ranges::is_sorted(done[0]));
    CHECK(done[1] == std::vector<std::size_t>{2, 1, 0, 5, 4, 3, 8, 7, 6, 11, 10, 9});
  }
}

TEST_CASE("Seq1F1B refuses slices of half a sequence") {
  CHECK_THAT(test::message_of<infeasible>([] {
               (void)seq_1f1b({4, 10, 4});
             }),
             ContainsSubstring("heddle::schedule::seq_1f1b") &&
                 ContainsSubstring("microbatches = 10, slices = 4") &&
                 ContainsSubstring("the nearest valid number is 8"));
  CHECK_THAT(test::message_of<contract_error>([] { (void)seq_1f1b(4, 8, 0); }),
             ContainsSubstring("slices = 0"));
}

TEST_CASE("1F1B-V takes as long as the orders of its authors' program, in their memory") {
  struct Of {
    int p, m, step;
  };
  for (const auto& [p, m, step] :
       {Of{2, 2, 16},  {2, 4, 28},    {2, 6, 40},   {3, 3, 26}, {3, 6, 44},   {3, 9, 62},
        {4, 4, 39},    {4, 8, 63},    {4, 12, 87},  {5, 5, 48}, {5, 10, 78},  {5, 15, 108},
        {6, 6, 58},    {6, 12, 94},   {6, 18, 130}, {7, 7, 72}, {7, 14, 114}, {7, 21, 156},
        {8, 8, 81},    {8, 16, 129},  {8, 24, 177}, {9, 9, 90}, {9, 18, 144}, {9, 27, 198},
        {12, 12, 123}, {12, 24, 196}, {12, 36, 268}}) {
    const Orders orders = one_f_one_b_v(p, m);
    INFO(orders.name);
    CHECK(length(orders, {.forward = 1, .backward = 2}) == step);
    CHECK(std::ranges::max(schedule::live_activations(orders)) == 2 * (2 * p / 3 + 1));
    // Of stages of half the size.
    CHECK(!(length(one_f_one_b(p, m), {.forward = 2, .backward = 4}) < step));
  }
}

TEST_CASE("1F1B-V and Seq1F1B pass the battery") {
  for (const int p : {1, 2, 3, 4, 5, 6})
    for (const int m : {1, 2, 3, 8, 13}) {
      passes(one_f_one_b_v(p, m), 2 * p, m);
      for (const int slices : {1, 2, 3}) passes(seq_1f1b(p, m * slices, slices), p, m * slices);
    }
  CHECK_THAT(test::message_of<contract_error>([] { (void)one_f_one_b_v(0, 4); }),
             ContainsSubstring("heddle::schedule::one_f_one_b_v"));
}

TEST_CASE("1F1B-V progresses within its memory, whatever P and M are") {
  for (int p = 1; p <= 25; ++p)
    for (int m = 1; m <= 50; m = m < 6 ? m + 1 : m + 22) {
      const Orders orders = one_f_one_b_v(p, m);
      if (schedule::first_fault(orders) ||
          std::ranges::max(schedule::live_activations(orders)) > 2 * (2 * p / 3 + 1))
        FAIL("P=" << p << " M=" << m);
    }
}

}  // namespace test_one_f_one_b_variants
