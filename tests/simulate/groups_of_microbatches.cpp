// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors

// kFkB, and the pass that makes it of 1F1B and of everything else.

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string>
#include <utility>

#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>

#include <heddle/schedule.hpp>
#include <heddle/simulate.hpp>
#include <heddle/simulate/any_time.hpp>

#include "support/complaint.hpp"
#include "support/rational.hpp"
#include "support/schedule_battery.hpp"

namespace test_groups_of_microbatches {

using namespace heddle;
using Catch::Matchers::ContainsSubstring;
using test::Rational;

namespace {

/// The step of kFkB where every transfer takes `transfer`.
double step(int p, int m, int k, double transfer) {
  return simulate(schedule::kfkb({.ranks = p, .microbatches = m, .group = k}),
                  {.forward = 1, .backward = 2, .latency = transfer})
      .makespan();
}

}  // namespace

TEST_CASE("kFkB with free transfers takes (M + P - 1)(F + B) and keeps k min(M/k, P - r)") {
  BasicTimeline<Rational> timeline;
  for (int p = 2; p <= 32; p = p < 9 ? p + 1 : p + 11) {
    for (const int k : {1, 2, 3, 4, 7}) {
      for (const int groups : {1, 2, 3, 5, 8, 33}) {
        const int m = groups * k;
        const Schedule grouped = schedule::kfkb({.ranks = p, .microbatches = m, .group = k});
        for (const auto& [forward, backward] :
             {std::pair<Rational, Rational>{{2, 7}, {5, 3}}, {{5, 3}, {2, 7}}}) {
          simulate(grouped, BasicStageCosts<Rational>{.forward = forward, .backward = backward},
                   timeline);
          if (!(timeline.makespan() == Rational(m + p - 1) * (forward + backward)))
            FAIL(grouped.name() << ": " << timeline.makespan());
        }
        for (int r = 0; r < p; ++r)
          if (const auto live = schedule::peak(timeline, Rank{r}, role::saved).parts;
              live != static_cast<std::uint64_t>(k * std::min(groups, p - r)))
            FAIL(grouped.name() << " keeps " << live << " on rank " << r);
      }
    }
  }
}

TEST_CASE("groups of two hide transfers as far as Ada-Grouper's rule lets them") {
  struct Gain {
    double transfer, of_4, of_8;
  };
  // The values of the fact sheet, rounded there to two digits.
  for (const auto& [transfer, of_4, of_8] :
       {Gain{0, 1, 1}, Gain{0.1, 1.04, 1.05}, Gain{0.25, 1.09, 1.11}, Gain{0.5, 1.18, 1.22},
        Gain{1, 1.35, 1.41}}) {
    CHECK(std::abs(step(4, 16, 1, transfer) / step(4, 16, 2, transfer) - of_4) <= 0.005);
    CHECK(std::abs(step(8, 32, 1, transfer) / step(8, 32, 2, transfer) - of_8) <= 0.005);
  }
  for (const double transfer : {0.0, 0.1, 0.25, 0.5, 1.0})
    CHECK(step(4, 16, 4, transfer) >= step(4, 16, 2, transfer));
  CHECK(step(4, 16, 4, 2) < step(4, 16, 2, 2));
}

TEST_CASE("kFkB of groups of one is 1F1B, and passes the battery in groups") {
  constexpr StageSizes sizes{.activation = 24, .saved = 40, .parameters = 16, .type = Scalar::f64};
  CHECK(schedule::kfkb(4, 7, 1).ranks == schedule::one_f_one_b(4, 7).ranks);
  CHECK(to_string(schedule::kfkb(2, 4, 2)) ==
        "0F0,0F1,0F2,0F3,0B0,0B1,0B2,0B3\n1F0,1F1,1B0,1B1,1F2,1F3,1B2,1B3\n");
  for (const int p : {1, 2, 3, 4})
    for (const int k : {1, 2, 3})
      for (const int groups : {1, 2, 5})
        test::pipeline_battery(
            schedule::kfkb({.ranks = p, .microbatches = k * groups, .group = k, .sizes = sizes}),
            {schedule::kfkb(p, k * groups, k), p, k * groups, true, 24});
}

TEST_CASE("group composes with every schedule of the catalogue") {
  for (const schedule::NamedSchedule& entry : schedule::catalogue()) {
    const Orders orders = entry.orders({.ranks = 4, .microbatches = 8, .stages_per_rank = 2});
    INFO(entry.name);
    CHECK(schedule::group(orders, 1) == orders);
    const Orders grouped = schedule::group(orders, 3);
    CHECK(grouped.graph == orders.graph);
    test::schedule_battery(weave(grouped));
    std::size_t entries = 0;
    std::size_t expected = 0;
    for (const auto& list : orders.ranks)
      for (const Order& order : list) expected += order.kind == Kind::update ? 1 : 3;
    for (const auto& list : grouped.ranks) entries += list.size();
    CHECK(entries == expected);
  }
}

TEST_CASE("group keeps fused pairs together, and one update after a group") {
  using enum Kind;
  const Stage s0{0};
  const Orders orders{"by hand",
                      {{{forward, s0, Item{0}},
                        {forward, s0, Item{1}, true},
                        {backward, s0, Item{0}},
                        {update, s0, Item{0}},
                        {backward, s0, Item{1}},
                        {update, s0, Item{1}}}}};
  CHECK(to_string(schedule::group(orders, 2)) ==
        "0F0,0F1,(0F2;0B0)OVERLAP_F_B,(0F3;0B1)OVERLAP_F_B,0UPDATE1,0B2,0B3,0UPDATE3\n");
}

TEST_CASE("microbatches that do not divide into groups are infeasible, and the nearest is named") {
  for (int k = 2; k <= 7; ++k) {
    for (int m = 1; m <= 40; ++m) {
      if (m % k == 0) continue;
      const std::string message =
          test::message_of<infeasible>([&] { (void)schedule::kfkb(4, m, k); });
      const int named = std::atoi(message.substr(message.rfind(' ')).c_str());
      if (named < 1 || named % k != 0 || (std::abs(named - m) > k / 2 && named != k))
        FAIL("M=" << m << " k=" << k << ": " << message);
    }
  }
  CHECK_THAT(test::message_of<infeasible>(
                 [] { (void)schedule::kfkb({.ranks = 4, .microbatches = 9, .group = 4}); }),
             ContainsSubstring("heddle::schedule::kfkb") &&
                 ContainsSubstring("microbatches = 9, group = 4") &&
                 ContainsSubstring("nearest valid number is 8"));
  CHECK_THAT(
      test::message_of<contract_error>([] { (void)schedule::kfkb(4, 8, 0); }),
      ContainsSubstring("a group needs at least one microbatch") && ContainsSubstring("group = 0"));
  CHECK_THAT(
      test::message_of<contract_error>([] { (void)schedule::group(schedule::gpipe(2, 2), 0); }),
      ContainsSubstring("heddle::schedule::group") && ContainsSubstring("size = 0"));
}

}  // namespace test_groups_of_microbatches
