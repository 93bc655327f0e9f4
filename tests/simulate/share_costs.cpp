// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors

// Costs by samples: shares of a microbatch against closed forms, on ranks of unequal speeds.

#include <algorithm>
#include <array>
#include <cstddef>
#include <utility>
#include <vector>

#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>

#include <heddle/schedule.hpp>
#include <heddle/simulate.hpp>
#include <heddle/simulate/any_time.hpp>
#include <heddle/simulate/share_costs.hpp>

#include "support/complaint.hpp"
#include "support/rational.hpp"

namespace test_share_costs {

using namespace heddle;
using Catch::Matchers::ContainsSubstring;
using schedule::in_shares;

namespace {

/// Two ranks of speed 1, two of speed 0.4, and links that cost nothing.
Machine unequal_machine() {
  std::vector<Device> devices{{.name = "fast"}, {.name = "fast"}};
  devices.resize(4, {.name = "slow", .speed = 0.4});
  return Machine::from_links(devices, std::vector<Link>(16, Link{0, 1e300}));
}

/// A step of `microbatches` of 28 samples on one stage. A sample costs 1 forward and 2 backward.
Seconds step_of(const std::vector<std::int64_t>& shares, int microbatches) {
  const Orders orders =
      in_shares(schedule::one_f_one_b(1, microbatches), {.samples = 28, .stages = {shares}});
  const MachineCosts whole({.forward = 28, .backward = 56}, unequal_machine());
  return simulate(weave(orders), ShareCosts(whole, orders.shares.samples)).makespan();
}

}  // namespace

TEST_CASE("shares by speed gain 1.75 over equal shares on speeds 1, 1, 0.4 and 0.4") {
  for (const int m : {1, 4, 16}) {
    const Seconds equal = step_of({7, 7, 7, 7}, m);
    const Seconds shared = step_of({10, 10, 4, 4}, m);
    INFO(m << " microbatches: " << equal << " over " << shared << " = " << equal / shared);
    // The slowest rank: 7 samples at 0.4 take 3 * 17.5; 10 at 1 and 4 at 0.4 take 3 * 10.
    CHECK(equal == 52.5 * m);
    CHECK(shared == 30.0 * m);
    CHECK(equal / shared == 1.75);
  }
}

TEST_CASE("a stage in shares takes as long as its largest one, in exact times") {
  using Time = test::Rational;
  const BasicStageCosts<Time> whole{.forward = Time(8), .backward = Time(16)};
  // Stage 0 computes at most 3 samples of 8 at once, stage 1 all of them: F is 3 and 8, B 6 and 16.
  const Orders orders =
      in_shares(schedule::one_f_one_b(2, 6), {.samples = 8, .stages = {{3, 3, 2}, {8}}});
  const auto timeline = simulate(weave(orders), ShareCosts(whole, orders.shares.samples));
  CHECK(timeline.makespan() == Time(3 + 6 * (8 + 16) + 6));
  // Divided by seven, a sample has no exact double.
  const Orders sevenths = in_shares(schedule::gpipe(1, 2), {.samples = 7, .stages = {{5, 2}}});
  CHECK(simulate(weave(sevenths), ShareCosts(whole, 7)).makespan() == Time(2 * 5 * 24) / Time(7));
}

TEST_CASE("a smaller microbatch costs less") {
  const StageCosts whole{.forward = 3, .backward = 6};
  const Orders orders = in_shares(schedule::gpipe(2, 3),
                                  {.samples = 3, .stages = {{3}, {3}}, .microbatches = {3, 3, 2}});
  // GPipe: stage 1 computes 8 samples forward and back after the first 3 of stage 0, which ends
  // last.
  const Timeline timeline = simulate(weave(orders), ShareCosts(whole, orders.shares.samples));
  CHECK(timeline.busy() == std::vector<Seconds>{24, 24});
  CHECK(timeline.makespan() < simulate(weave(schedule::gpipe(2, 3)), whole).makespan());
}

TEST_CASE("one full range costs as much as no shares, and other actions are not divided") {
  for (const auto& entry : schedule::catalogue()) {
    INFO(entry.name);
    const Orders orders = entry.orders({});
    std::size_t stages = 0;
    for (const auto& list : orders.ranks)
      for (const Order& order : list) stages = std::max(stages, +order.stage + 1);
    const Orders shared = in_shares(
        orders, {.samples = 4, .stages = std::vector(stages, std::vector<std::int64_t>{4})});
    const StageCosts whole{.forward = 1,
                           .backward_input = 2,
                           .backward_weight = 3,
                           .group = 5,
                           .update = 7,
                           .latency = 11};
    const Seconds expected = simulate(weave(orders), whole).makespan();
    CHECK(simulate(weave(shared), ShareCosts(whole, 4)).makespan() == expected);
    CHECK(simulate(weave(orders), ShareCosts(whole, 4)).makespan() == expected);
  }
  const Orders divided = in_shares(schedule::gpipe(1, 1), {.samples = 2, .stages = {{1, 1}}});
  const Schedule woven = weave(divided);
  const StageCosts whole{.forward = 2, .backward = 4, .group = 5, .update = 7};
  CHECK(simulate(woven, ShareCosts(whole, 2)).makespan() == 1 + 2 + 5 + 7);
  CHECK_THAT(test::message_of<contract_error>([&] { (void)ShareCosts(whole, 0); }),
             ContainsSubstring("samples = 0"));
  // Passes over the Schedule keep the samples: lines of a mesh, sums in rounds, folded storage.
  const Schedule lines = schedule::fold(schedule::expand(
      schedule::data_parallel(woven, {{"data", 2}, {"pipe", 2}}), schedule::CollectiveForm{}));
  for (std::size_t i = 0; i < lines.size(); ++i)
    CHECK(schedule::samples_of(lines, ActionId{i}) ==
          (lines[ActionId{i}].kind <= Kind::backward ? 1 : 0));
}

}  // namespace test_share_costs
