// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>

#include <heddle/schedule.hpp>
#include <heddle/simulate.hpp>
#include <heddle/simulate/any_time.hpp>

#include "support/complaint.hpp"
#include "support/rational.hpp"
#include "support/schedule_battery.hpp"

namespace test_dapple_recurrence {

using namespace heddle;
using Catch::Matchers::ContainsSubstring;
using WarmUp = schedule::DappleOptions::WarmUp;
using test::Rational;

namespace {

/// Stages of unequal cost and transfers of one latency.
struct UnequalCosts {
  using Time = Rational;
  Rational latency;

  static Rational cost(Kind kind, int stage) {
    return kind == Kind::forward ? Rational(2 + stage * 5 % 7, 3) : Rational(4 + stage * 3 % 5, 3);
  }
  [[nodiscard]] Rational time(const Schedule& schedule, ActionId id) const {
    const Action& action = schedule[id];
    if (action.kind == Kind::update) return {};
    return cost(action.kind, static_cast<int>(+action.stage));
  }
  [[nodiscard]] Transfer<Rational> transfer(const Schedule&, ActionId) const {
    return {{}, latency};
  }
};

int warm_up(int stages, int stage, WarmUp policy, int most_live, int microbatches) {
  const int wanted = policy == WarmUp::policy_a ? stages - stage : 2 * (stages - stage) - 1;
  return std::min({wanted, most_live, microbatches});
}

/// The paper's recurrence: with K forwards before the first backward, forward i waits for backward
/// i - K of its stage, and backward i for forward i + K - 1, besides the neighbours' and the one
/// before. An independent way to the makespan.
Rational recurrence(int stages, int microbatches, WarmUp policy, int most_live,
                    const UnequalCosts& costs) {
  const auto s_count = static_cast<std::size_t>(stages);
  const auto m_count = static_cast<std::size_t>(microbatches);
  std::vector<std::vector<Rational>> f(m_count, std::vector<Rational>(s_count));
  std::vector<std::vector<Rational>> b = f;
  bool changed = true;
  while (changed) {  // relaxes until nothing moves: no order of evaluation is assumed
    changed = false;
    for (int i = 0; i < microbatches; ++i) {
      for (int x = 0; x < stages; ++x) {
        const auto at = [&](auto& table, int item, int stage) -> Rational& {
          return table[static_cast<std::size_t>(item)][static_cast<std::size_t>(stage)];
        };
        const int k = warm_up(stages, x, policy, most_live, microbatches);
        Rational start;
        if (i >= k) start = std::max(start, at(b, i - k, x));
        if (i > 0) start = std::max(start, at(f, i - 1, x));
        if (x > 0) start = std::max(start, at(f, i, x - 1) + costs.latency);
        const Rational forward = start + UnequalCosts::cost(Kind::forward, x);
        start = at(f, std::min(i + k - 1, microbatches - 1), x);
        if (i > 0) start = std::max(start, at(b, i - 1, x));
        if (x + 1 < stages) start = std::max(start, at(b, i, x + 1) + costs.latency);
        const Rational backward = start + UnequalCosts::cost(Kind::backward, x);
        changed |= !(at(f, i, x) == forward) || !(at(b, i, x) == backward);
        at(f, i, x) = forward;
        at(b, i, x) = backward;
      }
    }
  }
  Rational last;
  for (const auto& row : b) last = std::max(last, *std::max_element(row.begin(), row.end()));
  return last;
}

}  // namespace

TEST_CASE("DAPPLE's step is that of its recurrence, for unequal stages and any cap") {
  for (const int s : {1, 2, 3, 5, 8})
    for (const int m : {1, 2, 3, 7, 12})
      for (const int most_live : {1, 2, 3, 5, 100})
        for (const WarmUp policy : {WarmUp::policy_a, WarmUp::policy_b})
          for (const Rational latency : {Rational(0), Rational(1, 2), Rational(3)}) {
            const UnequalCosts costs{latency};
            const auto timeline = simulate(
                schedule::dapple(
                    {.ranks = s, .microbatches = m, .warm_up = policy, .most_live = most_live}),
                costs);
            const Rational expected = recurrence(s, m, policy, most_live, costs);
            if (!(timeline.makespan() == expected))
              FAIL("S=" << s << " M=" << m << " cap " << most_live << ", policy "
                        << static_cast<int>(policy) << ", latency " << latency << ": "
                        << timeline.makespan() << " for " << expected);
            for (int r = 0; r < s; ++r)
              REQUIRE(schedule::peak(timeline, Rank{r}, role::saved).parts ==
                      static_cast<std::uint64_t>(warm_up(s, r, policy, most_live, m)));
          }
}

TEST_CASE("with memory for it either policy has the bubble of 1F1B, exactly") {
  BasicTimeline<Rational> timeline;
  for (int p = 2; p <= 32; p = p < 9 ? p + 1 : p + 11)
    for (const int m : {1, 2, 3, 5, 8, 31, 33, 64})
      for (const WarmUp policy : {WarmUp::policy_a, WarmUp::policy_b}) {
        const Schedule early = schedule::dapple({.ranks = p, .microbatches = m, .warm_up = policy});
        simulate(early, BasicStageCosts<Rational>{.forward = {2, 7}, .backward = {5, 3}}, timeline);
        if (!(timeline.makespan() == Rational(m + p - 1) * Rational(41, 21)))
          FAIL(early.name() << ": " << timeline.makespan());
      }
  for (const int p : {1, 2, 5})
    for (const int m : {1, 4, 9})
      CHECK(schedule::dapple(p, m).ranks == schedule::one_f_one_b(p, m).ranks);
}

TEST_CASE("policy B hides transfers that take as long as a stage") {
  const auto step = [](WarmUp policy, double latency) {
    return simulate(schedule::dapple({.ranks = 4, .microbatches = 32, .warm_up = policy}),
                    {.forward = 1, .backward = 2, .latency = latency})
        .makespan();
  };
  CHECK(step(WarmUp::policy_a, 0) == step(WarmUp::policy_b, 0));
  for (const double latency : {0.25, 0.5, 1.0})
    CHECK(step(WarmUp::policy_b, latency) < step(WarmUp::policy_a, latency));
  // Of S + (S - 1) stages in a row, compute and transfer in turn, each takes what a stage takes.
  CHECK(step(WarmUp::policy_b, 1.5) == (32 + 2 * 4 - 1 - 1) * 3);
}

TEST_CASE("at equal memory early backward beats GPipe, whose microbatches all live at once") {
  // Two activations per rank: GPipe stops at two microbatches a step, DAPPLE runs sixteen.
  const BasicStageCosts<Rational> costs{.forward = 1, .backward = 2};
  const auto late = simulate(schedule::gpipe({.ranks = 2, .microbatches = 2}), costs);
  const auto early =
      simulate(schedule::dapple({.ranks = 2, .microbatches = 16, .most_live = 2}), costs);
  const Rational gain = late.makespan() / 2 / (early.makespan() / 16);
  CHECK(gain == Rational(24, 17));
  const auto sum_of_peaks = [](const auto& timeline) {
    return schedule::peak(timeline, Rank{0}, role::saved).parts +
           schedule::peak(timeline, Rank{1}, role::saved).parts;
  };
  CHECK(sum_of_peaks(late) == 4);
  CHECK(sum_of_peaks(early) == 3);
}

TEST_CASE("DAPPLE passes the battery, and refuses a rank without memory") {
  constexpr StageSizes sizes{.activation = 24, .saved = 40, .parameters = 16, .type = Scalar::f64};
  for (const int p : {1, 2, 3, 4})
    for (const int m : {1, 2, 5})
      for (const int most_live : {1, 2, 9})
        test::pipeline_battery(
            schedule::dapple({.ranks = p,
                              .microbatches = m,
                              .warm_up = WarmUp::policy_b,
                              .most_live = most_live,
                              .sizes = sizes}),
            {schedule::dapple(p, m, WarmUp::policy_b, most_live), p, m, true, 24});
  CHECK_THAT(test::message_of<contract_error>(
                 [] { (void)schedule::dapple({.ranks = 2, .microbatches = 4, .most_live = 0}); }),
             ContainsSubstring("heddle::schedule::dapple") &&
                 ContainsSubstring("memory for at least one microbatch") &&
                 ContainsSubstring("most live = 0"));
  CHECK_THAT(test::message_of<contract_error>([] { (void)schedule::dapple(0, 4); }),
             ContainsSubstring("ranks = 0"));
}

}  // namespace test_dapple_recurrence
