// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
// optimised: yes

// The prediction of races: against closed forms, brute force over all groups, and real searches.

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <string>
#include <vector>

#include <catch2/catch_approx.hpp>
#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>

#include <heddle/core.hpp>
#include <heddle/plan.hpp>
#include <heddle/systems/race_prediction/race_prediction.hpp>

#include "support/cases.hpp"
#include "support/complaint.hpp"
#include "support/walk_sat.hpp"

namespace test_race_prediction {

using namespace heddle;
using namespace heddle::plan;
using Catch::Approx;
using Catch::Matchers::ContainsSubstring;

std::vector<double> exponential_times(double least, double mean_excess, std::uint64_t seed,
                                      std::size_t runs) {
  const Random random(seed, "exponential");
  std::vector<double> times(runs);
  for (std::size_t i = 0; i < runs; ++i)
    times[i] = least - mean_excess * std::log1p(-random.uniform(i));
  return times;
}

TEST_CASE("the mean of the least of n runs is that of all groups of n") {
  const std::vector<double> times{5, 1, 4, 1, 9};
  const systems::EmpiricalTimes runs(times);
  for (int walkers = 1; walkers <= 4; ++walkers) {
    double sum = 0;
    std::size_t groups = 1;
    for (int w = 0; w < walkers; ++w) groups *= times.size();
    for (std::size_t group = 0; group < groups; ++group) {
      double least = std::numeric_limits<double>::infinity();
      for (std::size_t rest = group, w = 0; w < static_cast<std::size_t>(walkers);
           ++w, rest /= times.size())
        least = std::min(least, times[rest % times.size()]);
      sum += least;
    }
    CHECK(runs.mean_of_least(walkers) == Approx(sum / static_cast<double>(groups)).epsilon(1e-12));
  }
}

TEST_CASE("19 of 20 samples of a shifted exponential predict its speed-ups within 10%") {
  constexpr double least = 10;
  constexpr double excess = 90;  // the mean is 100
  // The mean of 500 such runs has a standard deviation of 4%, so some samples err by more than 10%:
  // 1.7% of them by an independent computation.
  const std::uint64_t samples = test::cases(100, 3'000);
  std::uint64_t far = 0;
  for (std::uint64_t seed = 0; seed < samples; ++seed) {
    bool close = true;
    const systems::EmpiricalTimes runs(exponential_times(least, excess, seed, 500));
    const systems::ShiftedExponential fitted = systems::ShiftedExponential::fit(runs);
    CHECK(systems::largest_difference(runs, fitted) < 1.2 * systems::accepted_difference(runs));
    for (const int walkers : {2, 8, 32, 128}) {
      const double exact = (least + excess) / (least + excess / walkers);
      CAPTURE(seed, walkers, exact);
      close = close && std::abs(systems::race_speed_up(fitted, walkers) / exact - 1) <= 0.10;
      if (walkers <= 32)
        CHECK(systems::race_speed_up(runs, walkers) == Approx(exact).epsilon(0.20));
    }
    far += close ? 0u : 1u;
  }
  CHECK(100 * far <= 5 * samples);
}

TEST_CASE("the quadrature for lognormal times equals known means") {
  // E[Y] = exp(mu + sigma^2 / 2), and E[least of two] = 2 E[Y] P(Z > sigma / sqrt 2).
  for (const double deviation : {0.0, 0.01, 0.5, 1.0, 2.5}) {
    const systems::LognormalTimes times{3, deviation};
    const double mean = std::exp(3 + deviation * deviation / 2);
    CHECK(times.mean_of_least(1) == Approx(mean).epsilon(1e-6));
    CHECK(times.mean_of_least(2) == Approx(mean * std::erfc(deviation / 2)).epsilon(1e-6));
  }
  const systems::LognormalTimes times{0, 1};
  CHECK(times.share_within(1) == Approx(0.5));
  CHECK(times.share_within(std::exp(1.96)) == Approx(0.975).epsilon(1e-4));
  CHECK(times.share_within(0) == 0);
}

TEST_CASE("equal runs gain nothing, and fits of them are exact") {
  const systems::EmpiricalTimes runs({7, 7, 7});
  for (const int walkers : {1, 2, 64}) {
    CHECK(systems::race_speed_up(runs, walkers) == Approx(1).epsilon(1e-12));
    CHECK(systems::race_speed_up(systems::ShiftedExponential::fit(runs), walkers) ==
          Approx(1).epsilon(1e-12));
    CHECK(systems::race_speed_up(systems::LognormalTimes::fit(runs), walkers) ==
          Approx(1).epsilon(1e-6));
  }
  CHECK(systems::race_speed_up(systems::EmpiricalTimes({0.0}), 4) == 1);
}

TEST_CASE("a difference of distributions is that of the definition") {
  // Three runs against the uniform distribution on [0, 1].
  struct Uniform {
    static double share_within(double time) { return time; }
  };
  CHECK(systems::largest_difference(systems::EmpiricalTimes({0.2, 0.4, 0.9}), Uniform{}) ==
        Approx(2.0 / 3 - 0.4).epsilon(1e-12));
  CHECK(systems::largest_difference(systems::EmpiricalTimes({0.9}), Uniform{}) == Approx(0.9));
}

TEST_CASE("500 runs of WalkSAT predict the least flips of groups of other runs") {
  // Six planted formulas have a long form; at 64 walkers of 500 runs about one run in eight counts.
  const std::uint64_t formulas = test::cases(2, 6);
  double sum = 0;
  std::uint64_t predictions = 0;
  for (std::uint64_t seed = 0; seed < formulas; ++seed) {
    const test::Formula formula = test::planted_formula(50, 210, seed);
    std::vector<double> first(500);
    for (std::size_t i = 0; i < first.size(); ++i) first[i] = test::flips_of_run(formula, i);
    const systems::EmpiricalTimes runs(first);
    for (const int walkers : {4, 16, 64}) {
      constexpr int others = 12'800;
      double mean = 0;
      double least = std::numeric_limits<double>::infinity();
      for (int i = 0; i < others; ++i) {
        least = std::min(least, test::flips_of_run(formula, 1'000 + static_cast<std::uint64_t>(i)));
        if ((i + 1) % walkers != 0) continue;
        mean += least * walkers / others;
        least = std::numeric_limits<double>::infinity();
      }
      const double error = std::abs(runs.mean_of_least(walkers) / mean - 1);
      CAPTURE(seed, walkers, mean, error);
      CHECK(error <= 0.20);
      sum += error;
      ++predictions;
    }
  }
  CHECK(sum / static_cast<double>(predictions) <= 0.10);
}

TEST_CASE("times that cannot be predicted from are refused") {
  const auto message = [](auto call) { return test::message_of<contract_error>(call); };
  CHECK_THAT(message([] { systems::EmpiricalTimes({}); }),
             ContainsSubstring("needs the times of runs"));
  CHECK_THAT(message([] { systems::EmpiricalTimes({1, -2}); }), ContainsSubstring("times[1] = -2"));
  CHECK_THAT(message([] { systems::EmpiricalTimes({std::nan("")}); }),
             ContainsSubstring("leave out runs that found no result"));
  CHECK_THAT(message([] {
               (void)systems::LognormalTimes::fit(systems::EmpiricalTimes({0, 3, 0}));
             }),
             ContainsSubstring("2 of 3 runs took no time"));
  CHECK_THAT(message([] { (void)systems::EmpiricalTimes({1}).mean_of_least(0); }),
             ContainsSubstring("walkers = 0"));
  CHECK_THAT(message([] {
               (void)systems::ShiftedExponential{1, 1}.mean_of_least(-1);
             }),
             ContainsSubstring("walkers = -1"));
}

}  // namespace test_race_prediction
