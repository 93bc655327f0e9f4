// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors

// plan_switches() against all sequences of sharded dimensions, and the counts for cycles.

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <numeric>
#include <vector>

#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>

#include <heddle/core.hpp>
#include <heddle/core/text.hpp>
#include <heddle/plan.hpp>
#include <heddle/systems/dsp/switches.hpp>

#include "support/complaint.hpp"

namespace test_switches {

using namespace heddle;
using Catch::Matchers::ContainsSubstring;
using systems::plan_switches;
using systems::SwitchOptions;
using systems::SwitchPlan;

namespace {

using Dims = std::vector<std::size_t>;

Dims first_dims(std::size_t count) {
  Dims dims(count);
  std::iota(dims.begin(), dims.end(), std::size_t{0});
  return dims;
}

/// The least cost over all K^(L + 2) sequences of layouts: before, in each stage, behind.
/// Dimensions are 0 to K - 1.
double brute_force(std::size_t dims, const Dims& mixed, const SwitchOptions& options) {
  const std::size_t stages = mixed.size();
  const auto cost = [&](std::size_t from, std::size_t to) {
    if (from == to) return 0.0;
    return options.costs.empty() ? 1.0 : options.costs[from * dims + to];
  };
  double best = std::numeric_limits<double>::infinity();
  std::size_t all = 1;
  for (std::size_t i = 0; i < stages; ++i) all *= dims;
  Dims state(stages);
  for (std::size_t code = 0; code < all; ++code) {
    std::size_t rest = code;
    bool good = true;
    double sum = 0;
    for (std::size_t i = 0; i < stages; ++i) {
      state[i] = rest % dims;
      rest /= dims;
      good = good && state[i] != mixed[i];
      if (i > 0) sum += cost(state[i - 1], state[i]);
    }
    if (!good) continue;
    if (options.cyclic) sum += cost(state.back(), state.front());
    if (options.first) sum += cost(*options.first, state.front());
    if (options.last) sum += cost(state.back(), *options.last);
    best = std::min(best, sum);
  }
  return best;
}

/// Whether the plan keeps the rules, and its switches are where its layouts change and add up.
bool is_valid(std::size_t dims, const Dims& mixed, const SwitchOptions& options,
              const SwitchPlan& plan) {
  if (plan.sharded.size() != mixed.size()) return false;
  for (std::size_t i = 0; i < mixed.size(); ++i)
    if (plan.sharded[i] == mixed[i] || plan.sharded[i] >= dims) return false;
  Dims layouts = plan.sharded;
  std::size_t now = options.first.value_or(layouts.front());
  if (options.cyclic) layouts.push_back(layouts.front());
  if (options.last) layouts.push_back(*options.last);
  double sum = 0;
  std::vector<systems::DimensionSwitch> switches;
  for (std::size_t i = 0; i < layouts.size(); ++i) {
    if (layouts[i] == now) continue;
    switches.push_back({i, now, layouts[i]});
    sum += options.costs.empty() ? 1 : options.costs[now * dims + layouts[i]];
    now = layouts[i];
  }
  return switches == plan.switches && std::abs(sum - plan.cost) <= 1e-12 * (1 + sum);
}

/// `cycles` times 0, 1, ..., K - 1.
Dims cycle(std::size_t dims, int cycles) {
  Dims mixed;
  for (int c = 0; c < cycles; ++c)
    for (std::size_t d = 0; d < dims; ++d) mixed.push_back(d);
  return mixed;
}

}  // namespace

TEST_CASE("switches are the fewest of all state sequences for up to 4 dimensions and 8 stages") {
  std::size_t bad = 0, compared = 0;
  for (std::size_t dims = 2; dims <= 4; ++dims)
    for (std::size_t stages = 1; stages <= 8; ++stages)
      for (std::uint64_t seed = 0; seed < 12; ++seed) {
        const Random random(seed * 100 + stages * 10 + dims, "switches");
        std::uint64_t drawn = 0;
        Dims mixed;
        // One more: a stage that mixes none of the dimensions.
        for (std::size_t i = 0; i < stages; ++i)
          mixed.push_back(random.below(drawn++, dims + (seed % 3 == 0 ? 1 : 0)));
        SwitchOptions options;
        options.cyclic = seed % 4 == 1;
        if (seed % 4 >= 2) options.first = random.below(drawn++, dims);
        if (seed % 4 == 3) options.last = random.below(drawn++, dims);
        if (seed % 2 == 0)
          for (std::size_t i = 0; i < dims * dims; ++i)
            options.costs.push_back(static_cast<double>(1 + random.below(drawn++, 9)));
        const SwitchPlan plan = plan_switches(first_dims(dims), mixed, options);
        ++compared;
        if (plan.cost != brute_force(dims, mixed, options) || !is_valid(dims, mixed, options, plan))
          ++bad;
      }
  CHECK(compared == 3 * 8 * 12);
  CHECK(bad == 0);
}

TEST_CASE("a short programme is optimal for every list of stages") {
  // All lists of up to 4 stages over 3 dimensions, as a pass and as a cycle.
  std::size_t bad = 0;
  for (std::size_t stages = 1; stages <= 4; ++stages) {
    std::size_t all = 1;
    for (std::size_t i = 0; i < stages; ++i) all *= 3;
    for (std::size_t code = 0; code < all; ++code) {
      Dims mixed;
      for (std::size_t i = 0, rest = code; i < stages; ++i, rest /= 3) mixed.push_back(rest % 3);
      for (const bool cyclic : {false, true}) {
        const SwitchOptions options{.cyclic = cyclic};
        const SwitchPlan plan = plan_switches(first_dims(3), mixed, options);
        if (plan.cost != brute_force(3, mixed, options) || !is_valid(3, mixed, options, plan))
          ++bad;
      }
    }
  }
  CHECK(bad == 0);
}

TEST_CASE("a pass over all dimensions needs 1 switch, a cyclic return 2, two cycles 3") {
  for (std::size_t dims = 2; dims <= 9; ++dims) {
    CHECK(plan_switches(first_dims(dims), cycle(dims, 1)).switches.size() == 1);
    CHECK(plan_switches(first_dims(dims), cycle(dims, 1), {.cyclic = true}).switches.size() == 2);
  }
  CHECK(plan_switches({0, 1}, cycle(2, 2), {.cyclic = true}).switches.size() == 4);
  CHECK(plan_switches({0, 1, 2}, cycle(3, 2), {.cyclic = true}).switches.size() == 3);
  CHECK(plan_switches({0, 1, 2, 3}, cycle(4, 2), {.cyclic = true}).switches.size() == 3);
}

TEST_CASE("time, then space, of a tensor of four dimensions") {
  const SwitchPlan pass = plan_switches({1, 2}, {1, 2}, {.first = 2, .last = 2});
  CHECK(pass.sharded == Dims{2, 1});
  CHECK(text(pass) == "2 switches: before stage 1 from 2 to 1, before stage 2 from 1 to 2");
  // The channels are mixed in the layout that is there.
  CHECK(plan_switches({1, 2}, {1, 3, 2, 3}).sharded == Dims{2, 2, 1, 1});
  CHECK(plan_switches({1, 2}, {}).switches.empty());
  const SwitchPlan moved = plan_switches({1, 2}, {}, {.first = 1, .last = 2});
  CHECK(text(moved) == "1 switch: before stage 0 from 1 to 2");
}

TEST_CASE("a dear switch is avoided, an excluded one never taken") {
  constexpr double never = std::numeric_limits<double>::infinity();
  // From 0 to 2 costs 5; by way of 1 it is 2, where a stage stands between.
  const SwitchOptions dear{.first = 0, .last = 2, .costs = {0, 1, 5, 1, 0, 1, 5, 1, 0}};
  CHECK(plan_switches({0, 1, 2}, {7}, dear).cost == 2);
  const SwitchOptions closed{.first = 0, .last = 2, .costs = {0, 1, never, 1, 0, 1, never, 1, 0}};
  CHECK(plan_switches({0, 1, 2}, {7}, closed).sharded == Dims{1});
}

TEST_CASE("what plan_switches() rejects") {
  const auto complaint = [](auto&&... arguments) {
    return test::message_of<contract_error>([&] { (void)plan_switches(arguments...); });
  };
  CHECK_THAT(complaint(Dims{}, Dims{0}), ContainsSubstring("must not be empty"));
  CHECK_THAT(complaint(Dims{1, 2, 1}, Dims{0}), ContainsSubstring("dimension 1"));
  CHECK_THAT(complaint(Dims{1, 2}, Dims{1}, SwitchOptions{.first = 3}),
             ContainsSubstring("dimension 3"));
  CHECK_THAT(complaint(Dims{1, 2}, Dims{1}, SwitchOptions{.cyclic = true, .first = 1}),
             ContainsSubstring("a cyclic plan cannot have a first"));
  CHECK_THAT(complaint(Dims{1, 2}, Dims{1}, SwitchOptions{.costs = {1, 2, 3}}),
             ContainsSubstring("3 costs, expected 4"));
  CHECK_THAT(complaint(Dims{1, 2}, Dims{1}, SwitchOptions{.costs = {0, -1, 1, 0}}),
             ContainsSubstring("cost -1"));
  CHECK_THAT(complaint(Dims{1, 2}, Dims{1}, SwitchOptions{.costs = {0, std::nan(""), 1, 0}}),
             ContainsSubstring("nan"));
  CHECK_THAT(test::message_of<infeasible>([] {
               (void)plan_switches({1}, {3, 1});
             }),
             ContainsSubstring("stage 1 has no dimension"));
}

}  // namespace test_switches
