// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors

// The closed forms of schedule::bubble_ratio() against the simulator, for the whole catalogue.

#include <array>
#include <cmath>
#include <cstdint>
#include <limits>
#include <optional>
#include <set>
#include <string>

#include <catch2/catch_approx.hpp>
#include <catch2/catch_test_macros.hpp>

#include <heddle/core/random.hpp>
#include <heddle/schedule.hpp>
#include <heddle/simulate.hpp>

#include "support/cases.hpp"
#include "support/coverage.hpp"

namespace test_closed_form_ratios {

using namespace heddle;
using schedule::NamedSchedule;
using schedule::PipelineShape;

namespace {

/// F, I and W. A form may hold for some of them only.
constexpr auto times = std::to_array<std::array<double, 3>>({{1, 1, 1},
                                                             {3, 2, 1},
                                                             {2, 3, 1},
                                                             {1, 2, 3},
                                                             {2, 2, 1},
                                                             {2, 1, 2},
                                                             {10, 13, 7},
                                                             {4, 1, 1},
                                                             {0, 1, 1}});

PipelineShape random_shape(const Random& random, std::uint64_t& next) {
  const auto below = [&](std::uint64_t n) { return static_cast<int>(random.below(next++, n)); };
  PipelineShape shape{.ranks = 1 + below(9), .stages_per_rank = 1 + below(3)};
  shape.microbatches = below(3) == 0 ? 1 + below(40) : shape.ranks * (1 + below(4));
  shape.pairs = 1 + below(2);
  shape.group = below(3) == 0 ? 1 + below(12) : 0;
  shape.most_live = below(3) == 0 ? 1 + below(12) : 0;
  return shape;
}

}  // namespace

TEST_CASE("every closed form of the catalogue is the bubble ratio of the simulator") {
  const Random random(46, "closed forms");
  std::uint64_t next = 0;
  test::Coverage coverage("closed forms");
  for (const NamedSchedule& entry : schedule::catalogue()) {
    const std::string name(entry.name);
    const std::uint64_t shapes = test::cases(60, 1500);
    for (std::uint64_t s = 0; s < shapes; ++s) {
      const PipelineShape shape = random_shape(random, next);
      Orders orders;
      try {
        orders = entry.orders(shape);
      } catch (const heddle::infeasible&) {
        continue;
      }
      const Schedule woven = weave(orders);
      for (const auto& [forward, input, weight] : times) {
        const auto form = schedule::bubble_ratio(entry, shape, forward, input, weight);
        if (!form) continue;
        coverage.count(name, true);
        INFO(woven.name() << ", F = " << forward << ", I = " << input << ", W = " << weight);
        const double simulated =
            simulate(woven,
                     {.forward = forward, .backward_input = input, .backward_weight = weight})
                .bubble_ratio();
        CHECK(*form == Catch::Approx(simulated).margin(1e-12));
      }
    }
    if (entry.bubble != nullptr) coverage.count(name, false);
  }
  CAPTURE(coverage);
  CHECK(coverage.rarer_than(20) == "");
}

TEST_CASE("a schedule without a closed form has none, and wrong numbers are errors") {
  const PipelineShape shape{.ranks = 4, .microbatches = 8};
  std::set<std::string> without;
  for (const NamedSchedule& entry : schedule::catalogue())
    if (!schedule::bubble_ratio(entry, shape)) without.emplace(entry.name);
  CHECK(without == std::set<std::string>{"1f1b-v", "flexpipe"});
  const NamedSchedule& plain = schedule::find_schedule("1f1b");
  CHECK(schedule::bubble_ratio(plain, shape) == 3.0 / 11);
  CHECK(schedule::bubble_ratio(schedule::find_schedule("zb-h1"), shape) == 1.0 / 9);
  CHECK(schedule::bubble_ratio(plain, shape, 0, 0, 0) == 0);
  CHECK_THROWS_AS(schedule::bubble_ratio(plain, {.ranks = 0}), contract_error);
  CHECK_THROWS_AS(schedule::bubble_ratio(plain, shape, -1), contract_error);
  CHECK_THROWS_AS(schedule::bubble_ratio(plain, shape, 1, std::nan("")), contract_error);
  CHECK_THROWS_AS(
      schedule::bubble_ratio(plain, shape, 1, 1, std::numeric_limits<double>::infinity()),
      contract_error);
}

}  // namespace test_closed_form_ratios
