// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors

// Interleaved 1F1B in groups, combined 1F1B, GIS, Seq1F1B and 1F1B-V: closed forms of the step and
// of the live activations, figures of their authors' programs, the battery, and what they refuse.

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>

#include <heddle/schedule.hpp>
#include <heddle/simulate.hpp>
#include <heddle/simulate/any_time.hpp>

#include "support/cases.hpp"
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

/// The rule of Megatron-LM: every group has a microbatch for each rank.
bool megatron_runs(int p, int m, int g) { return g >= p && g <= m && (m % g == 0 || m % g >= p); }

/// Calls `visit(p, v, m, g)` for every shape that Megatron-LM runs.
template <class Visit>
int for_each_shape(Visit&& visit) {
  int shapes = 0;
  const int ranks = static_cast<int>(test::cases(5, 8));
  const int stages = static_cast<int>(test::cases(3, 4));
  const int microbatches = static_cast<int>(test::cases(13, 25));
  for (int p = 1; p <= ranks; ++p)
    for (int v = 1; v <= stages; ++v)
      for (int m = p; m <= microbatches; ++m)
        for (int g = p; g <= m; ++g)
          if (megatron_runs(p, m, g)) {
            visit(p, v, m, g);
            ++shapes;
          }
  return shapes;
}

}  // namespace

TEST_CASE("interleaved 1F1B in groups runs where Megatron-LM does, in (M V + P - 1)(F + B)") {
  const int shapes = for_each_shape([](int p, int v, int m, int g) {
    const Orders orders = grouped_interleaved(p, v, m, g);
    for (const auto& [f, b] : {std::pair<Rational, Rational>{1, 2}, {3, 2}})
      if (const Rational step = length(orders, {.forward = f, .backward = b});
          !(step == Rational(m * v + p - 1) * (f + b)))
        FAIL(orders.name << " takes " << step);
    const std::vector<std::int64_t> live = schedule::live_activations(orders);
    for (int r = 0; r < p; ++r)
      if (live[static_cast<std::size_t>(r)] != std::min(m * v, (v - 1) * g + 2 * (p - 1 - r) + 1))
        FAIL(orders.name << " keeps " << live[static_cast<std::size_t>(r)] << " on rank " << r);
  });
  CHECK(shapes > 300);
}

TEST_CASE("4 ranks, 9 microbatches and groups of 5 take 63 and keep 12 10 8 6") {
  const Orders orders = grouped_interleaved(4, 2, 9, 5);
  CHECK(length(orders, {.forward = 1, .backward = 2}) == 63);
  CHECK(schedule::live_activations(orders) == std::vector<std::int64_t>{12, 10, 8, 6});
}

TEST_CASE("groups as long as the rounds of torch give the orders of interleaved()") {
  for (const int p : {1, 2, 3, 4})
    for (const int v : {1, 2, 3})
      for (const int rounds : {1, 2, 3})
        CHECK(grouped_interleaved(p, v, p * rounds).ranks == interleaved(p, v, p * rounds).ranks);
  CHECK(grouped_interleaved(4, 2, 10, 5).ranks == interleaved(4, 2, 10).ranks);
}

TEST_CASE("combined 1F1B takes ((V-1) G + P)(F + B) + (M V - (V-1) G - 1) FB") {
  int tried = 0;
  for_each_shape([&](int p, int v, int m, int g) {
    const int ahead = (v - 1) * g;
    const Orders orders = combined_1f1b(p, v, m, g);
    const std::vector<std::int64_t> live = schedule::live_activations(orders);
    for (int r = 0; r < p; ++r)
      if (live[static_cast<std::size_t>(r)] != std::min(m * v, ahead + 2 * (p - 1 - r) + 2))
        FAIL(orders.name << " keeps " << live[static_cast<std::size_t>(r)] << " on rank " << r);
    if (m * v < ahead + 2 * p - 1) return;
    ++tried;
    for (const auto& [f, b, fb] :
         {std::tuple<Rational, Rational, Rational>{1, 2, {12, 5}}, {3, 2, 3}, {3, 2, 5}})
      if (const Rational step =
              length(orders, {.forward = f, .backward = b, .forward_backward = fb});
          !(step == Rational(ahead + p) * (f + b) + Rational(m * v - ahead - 1) * fb))
        FAIL(orders.name << " takes " << step << " for FB = " << fb);
  });
  CHECK(tried > 100);
}

TEST_CASE("combined 1F1B hides what fused pairs of interleaved 1F1B cannot") {
  const ExactCosts costs{.forward = 1, .backward = 2, .forward_backward = {12, 5}};
  CHECK(length(combined_1f1b(8, 2, 32), costs) == 180);
  CHECK(length(fuse(interleaved(8, 2, 32)), costs) == Rational(993, 5));
}

TEST_CASE("GIS takes 3 M V + 2 (P - 1) + (V - 1) P / 2 and keeps (V - 1) G + P - r") {
  const ExactCosts costs{.forward = 1, .backward_input = 1, .backward_weight = 1};
  for (const int p : {2, 4, 6, 8})
    for (const int v : {1, 2, 3, 4})
      for (const int groups : {2, 3, 4, 5}) {
        const int g = p / 2, m = groups * g;
        const Orders orders = gis(p, v, m);
        INFO(orders.name);
        CHECK(length(orders, costs) == 3 * m * v + 2 * (p - 1) + (v - 1) * g);
        const std::vector<std::int64_t> live = schedule::live_activations(orders);
        for (int r = 0; r < p; ++r)
          CHECK(live[static_cast<std::size_t>(r)] == std::min(m * v, (v - 1) * g + p - r));
      }
  CHECK(length(gis(8, 4, 16), costs) == 218);
  CHECK(schedule::live_activations(gis(8, 4, 16)).front() == 20);
}

TEST_CASE("GIS with whole backwards takes as long as the orders of its authors' program") {
  struct Of {
    int p, v, m, step;
  };
  for (const auto& [p, v, m, step] : {Of{3, 2, 3, 30},
                                      {3, 4, 13, 180},
                                      {4, 3, 17, 212},
                                      {5, 2, 10, 87},
                                      {5, 4, 20, 297},
                                      {6, 4, 25, 432},
                                      {7, 3, 14, 186},
                                      {8, 4, 16, 285},
                                      {9, 2, 37, 288},
                                      {9, 4, 36, 591}})
    CHECK(length(merge_backward(gis(p, v, m)), {.forward = 1, .backward = 2}) == step);
}

TEST_CASE("interleaved 1F1B in groups, combined 1F1B and GIS pass the battery") {
  for (const int p : {1, 2, 3, 4})
    for (const int v : {1, 2, 3})
      for (const int m : {1, 3, 2 * p, 2 * p + 1}) {
        passes(gis(p, v, m), p * v, m);
        passes(combined_1f1b(p, v, m, m), p * v, m);
        if (m > p) passes(grouped_interleaved(p, v, m, m % (p + 1) == 0 ? p + 1 : m), p * v, m);
      }
}

TEST_CASE("a group with fewer microbatches than ranks is refused, and the nearest is named") {
  for (int p = 2; p <= 5; ++p)
    for (int m = p; m <= 14; ++m)
      for (int g = 1; g <= m; ++g) {
        if (megatron_runs(p, m, g)) continue;
        const std::string said =
            test::message_of<infeasible>([&] { (void)grouped_interleaved(p, 2, m, g); });
        const std::string sentence = "the nearest valid group is ";
        REQUIRE(said.find(sentence) != std::string::npos);
        const int nearest = std::stoi(said.substr(said.find(sentence) + sentence.size()));
        CHECK(megatron_runs(p, m, nearest));
        for (int other = 1; other <= m; ++other)
          if (megatron_runs(p, m, other)) CHECK(std::abs(nearest - g) <= std::abs(other - g));
      }
  CHECK_THAT(
      test::message_of<infeasible>([] {
        (void)combined_1f1b({4, 2, 9, 4});
      }),
      ContainsSubstring("heddle::schedule::combined_1f1b") &&
          ContainsSubstring("microbatches = 9, ranks = 4, group = 4, the last group has 1") &&
          ContainsSubstring("the nearest valid group is 5"));
  CHECK_THAT(test::message_of<contract_error>([] { (void)grouped_interleaved(4, 2, 8, -1); }),
             ContainsSubstring("group = -1"));
  CHECK_THAT(test::message_of<infeasible>([] { (void)interleaved(4, 2, 9); }),
             ContainsSubstring("the nearest valid number is 8; grouped_interleaved() takes any"));
  CHECK_THAT(test::message_of<contract_error>([] { (void)gis(4, 0, 8); }),
             ContainsSubstring("heddle::schedule::gis"));
}

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
