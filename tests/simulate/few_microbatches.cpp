// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors

// Zero-bubble schedules with so few microbatches that memory sets no limit: their steps against the
// published orders, the longest paths and figures of the zero-bubble authors' heuristics.

#include <algorithm>
#include <cstdint>
#include <vector>

#include <catch2/catch_test_macros.hpp>

#include <heddle/schedule.hpp>
#include <heddle/simulate.hpp>
#include <heddle/simulate/any_time.hpp>

namespace test_few_microbatches {

using namespace heddle;
using Costs = BasicStageCosts<std::int64_t>;

namespace {

std::int64_t step(const Orders& orders, const Costs& costs) {
  return simulate(weave(orders), costs).makespan();
}

std::int64_t most_live(const Orders& orders) {
  return std::ranges::max(schedule::live_activations(orders));
}

constexpr Costs unit{.forward = 1, .backward_input = 1, .backward_weight = 1};

/// Settings of F, I, W and the latency.
const std::vector<Costs> settings = {
    unit,
    {.forward = 10, .backward_input = 14, .backward_weight = 10, .latency = 1},
    {.forward = 10, .backward_input = 20, .backward_weight = 10},
    {.forward = 10, .backward_input = 11, .backward_weight = 9, .latency = 3},
    {.forward = 2, .backward_input = 1, .backward_weight = 1},
    {.forward = 1, .backward_input = 2, .backward_weight = 1}};

}  // namespace

TEST_CASE("ZB-H1 and ZB-H2 of few microbatches: 3M + P - 1, and never longer than torch's") {
  for (int p = 1; p <= 16; ++p)
    for (int m = 1; m < 2 * p - 1; ++m) {
      const Orders h2 = schedule::zb_h2(p, m);
      INFO(h2.name);
      // With fewer microbatches than ranks, the first waits for its way down and up.
      if (m >= p) CHECK(step(h2, unit) == 3 * m + p - 1);
      CHECK(most_live(h2) == m);
      // Torch's ZB-H1, of which ZB-H2 with this memory is no longer.
      const Orders published = schedule::interleaved_zb1p(p, 1, std::min(m, p));
      const Orders h1 = schedule::zb_h1(p, std::min(m, p));
      CHECK(most_live(h1) <= most_live(published));
      for (const Costs& costs : settings) CHECK(step(h1, costs) <= step(published, costs));
    }
}

TEST_CASE("ZB-H1 and ZB-H2 on 16 ranks with 16 microbatches take as long as their authors'") {
  // The figures are the lengths of the orders of the authors' heuristic.
  CHECK(step(schedule::zb_h1(16, 16), settings[3]) == 750);
  CHECK(step(schedule::interleaved_zb1p(16, 1, 16), settings[3]) == 834);
  CHECK(step(schedule::zb_h2(16, 16), unit) == 63);
}

TEST_CASE("ZB-V of few microbatches: 6M + P - 1 for M = P, shorter than the published order") {
  int shorter = 0;
  for (int p = 1; p <= 16; ++p)
    for (int m = 1; m <= p; ++m) {
      const Orders filled = schedule::zb_v(p, m);
      const Orders published = schedule::zb_v(p, m, true);
      INFO(filled.name);
      CHECK(most_live(filled) <= most_live(published));
      if (m == p) CHECK(step(filled, unit) == 6 * m + p - 1);
      for (const Costs& costs : settings) {
        CHECK(step(filled, costs) <= step(published, costs));
        shorter += step(filled, costs) < step(published, costs);
      }
    }
  CHECK(shorter > 600);
  CHECK(step(schedule::zb_v(16, 16), unit) == 111);
  CHECK(step(schedule::zb_v(16, 16, true), unit) == 126);
  // With more microbatches the orders are the published ones.
  CHECK(schedule::zb_v(4, 5) == schedule::zb_v(4, 5, true));
}

}  // namespace test_few_microbatches
