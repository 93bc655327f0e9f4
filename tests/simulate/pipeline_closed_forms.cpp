// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <initializer_list>
#include <utility>

#include <catch2/catch_test_macros.hpp>

#include <heddle/schedule.hpp>
#include <heddle/simulate.hpp>
#include <heddle/simulate/any_time.hpp>

#include "support/rational.hpp"

namespace test_pipeline_closed_forms {

using namespace heddle;
using test::Rational;

namespace {

using Generator = Schedule (*)(const schedule::PipelineOptions&);

/// Makespan (M + P - 1)(F + B) and bubble (P - 1) / (M + P - 1), the same for both orders.
void check_exactly(Generator generate, int p, int m) {
  static BasicTimeline<Rational> timeline;
  const Schedule pipeline = generate({.ranks = p, .microbatches = m});
  for (const auto& [forward, backward] :
       {std::pair<Rational, Rational>{{2, 7}, {5, 3}}, {{5, 3}, {2, 7}}, {1, 1}}) {
    simulate(pipeline, BasicStageCosts<Rational>{.forward = forward, .backward = backward},
             timeline);
    if (timeline.makespan() == Rational(m + p - 1) * (forward + backward) &&
        timeline.bubble_ratio() == Rational(p - 1, m + p - 1)) {
      if (m % 8 != 0) return;  // the other costs on some sizes only
      continue;
    }
    FAIL(pipeline.name() << " with F=" << forward << " B=" << backward << ": makespan "
                         << timeline.makespan() << ", bubble " << timeline.bubble_ratio());
  }
}

}  // namespace

TEST_CASE("GPipe and 1F1B take (M + P - 1)(F + B), exactly, for P 2..32 and M 1..128") {
  for (const Generator generate :
       std::initializer_list<Generator>{&schedule::gpipe, &schedule::one_f_one_b})
    for (int p = 2; p <= 32; ++p)
      for (int m = 1; m <= 128; ++m) check_exactly(generate, p, m);
}

TEST_CASE("the same holds to 1e-12 in double, and the theory's bubble with it") {
  Timeline timeline;
  double worst = 0;
  for (const Generator generate :
       std::initializer_list<Generator>{&schedule::gpipe, &schedule::one_f_one_b}) {
    for (int p = 2; p <= 32; ++p) {
      for (int m = 1; m <= 128; m = m < 33 ? m + 1 : m + 19) {
        simulate(generate({.ranks = p, .microbatches = m}),
                 StageCosts{.forward = 0.1, .backward = 0.7}, timeline);
        const double expected = (m + p - 1) * (0.1 + 0.7);
        const double bubble = (p - 1.0) / (m + p - 1.0);
        worst = std::max({worst, std::abs(timeline.makespan() - expected) / expected,
                          std::abs(timeline.bubble_ratio() - bubble) / bubble,
                          std::abs(schedule::bubble_ratio(p, m) - bubble) / bubble});
      }
    }
  }
  CHECK(worst < 1e-12);
}

TEST_CASE("live activations are min(M, P - r) under 1F1B and M under GPipe") {
  BasicTimeline<Rational> timeline;
  for (const auto& [forward, backward] :
       {std::pair<Rational, Rational>{1, 2}, {{5, 3}, {2, 7}}, {{2, 7}, {5, 3}}}) {
    const BasicStageCosts<Rational> costs{.forward = forward, .backward = backward};
    for (const int p : {2, 3, 4, 7, 8, 16, 31, 32}) {
      for (const int m : {1, 2, 3, 5, 8, 16, 31, 32, 33, 64, 127, 128}) {
        const auto peak = [&](Generator generate, int r) {
          if (r == 0) simulate(generate({.ranks = p, .microbatches = m}), costs, timeline);
          return schedule::peak(timeline, Rank{r}, role::saved).parts;
        };
        for (int r = 0; r < p; ++r)
          if (const auto live = peak(&schedule::one_f_one_b, r);
              live != static_cast<std::uint64_t>(std::min(m, p - r)))
            FAIL("1F1B P=" << p << " M=" << m << ", rank " << r << ": " << live);
        for (int r = 0; r < p; ++r)
          if (const auto live = peak(&schedule::gpipe, r); live != static_cast<std::uint64_t>(m))
            FAIL("GPipe P=" << p << " M=" << m << ", rank " << r << ": " << live);
      }
    }
  }
}

TEST_CASE("one stage has no bubble, and a stream takes M + P - 1 forwards") {
  for (const int m : {1, 2, 7, 128}) {
    const schedule::PipelineOptions alone{.ranks = 1, .microbatches = m};
    CHECK(simulate(schedule::one_f_one_b(alone), {.forward = 1, .backward = 2}).bubble_ratio() ==
          0);
    CHECK(simulate(schedule::gpipe(alone), {.forward = 1, .backward = 2}).makespan() == 3 * m);
    CHECK(schedule::bubble_ratio(1, m) == 0);
    for (const int p : {1, 2, 5, 32})
      CHECK(
          simulate(schedule::stream({.ranks = p, .microbatches = m}), {.forward = 3}).makespan() ==
          3 * (m + p - 1));
  }
}

}  // namespace test_pipeline_closed_forms
