// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors

/// @file
/// SAT speed-up prediction: the predicted speed-up of a race against a closed form, and against the
/// least flips of groups of other WalkSAT runs.

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <optional>
#include <vector>

#include <heddle/core.hpp>
#include <heddle/pattern.hpp>
#include <heddle/plan.hpp>
#include <heddle/systems/race_prediction/race_prediction.hpp>

#include "comparison.hpp"
#include "support/walk_sat.hpp"

namespace hd = heddle;

namespace report {

namespace {

/// Returns in how many of 100 samples the speed-ups up to 128 walkers are within 10% of the closed
/// form. A sample is 500 runs of a shifted exponential (10, mean 100).
int close_samples() {
  int close = 0;
  for (std::uint64_t seed = 0; seed < 100; ++seed) {
    double largest = 0;
    const hd::Random random(seed, "shifted exponential");
    std::vector<double> times(500);
    for (std::size_t i = 0; i < times.size(); ++i)
      times[i] = 10 - 90 * std::log1p(-random.uniform(i));
    const auto fitted = hd::systems::ShiftedExponential::fit(hd::systems::EmpiricalTimes(times));
    for (int walkers = 2; walkers <= 128; walkers *= 2)
      largest = std::max(largest, std::abs(hd::systems::race_speed_up(fitted, walkers) /
                                               (100 / (10 + 90.0 / walkers)) -
                                           1));
    close += largest <= 0.10 ? 1 : 0;
  }
  return close;
}

/// The relative errors at 64 walkers of what 500 runs on a formula predict, against the mean of 200
/// groups of other runs.
struct Errors {
  double empirical = 0;
  double exponential = 0;
  double lognormal = 0;
  bool accepted = false;  ///< the test accepts the shifted exponential
};

Errors errors_of(const hd::test::Formula& formula) {
  std::vector<double> first(500);
  for (std::size_t i = 0; i < first.size(); ++i) first[i] = hd::test::flips_of_run(formula, i);
  const hd::systems::EmpiricalTimes runs(first);
  constexpr int walkers = 64;
  constexpr int groups = 200;
  double mean = 0;
  for (int group = 0; group < groups; ++group) {
    double least = std::numeric_limits<double>::infinity();
    for (int w = 0; w < walkers; ++w)
      least = std::min(
          least,
          hd::test::flips_of_run(formula, 1'000 + static_cast<std::uint64_t>(group * walkers + w)));
    mean += least / groups;
  }
  const auto error = [&](const auto& times) {
    return std::abs(times.mean_of_least(walkers) / mean - 1);
  };
  const auto exponential = hd::systems::ShiftedExponential::fit(runs);
  return {
      error(runs), error(exponential), error(hd::systems::LognormalTimes::fit(runs)),
      hd::systems::largest_difference(runs, exponential) <= hd::systems::accepted_difference(runs)};
}

/// Returns whether a race by work of 8 walkers has the same winner with 1 to 8 threads, and finds a
/// model.
bool has_one_winner(const hd::test::Formula& formula) {
  int winner = -1;
  for (int threads = 1; threads <= 8; ++threads) {
    const auto race = hd::pattern::race(
        {.walkers = 8, .threads = threads, .order = hd::pattern::RaceOptions::Order::by_work},
        [&](hd::pattern::Walker& walker) -> std::optional<std::vector<bool>> {
          hd::test::WalkSat run(formula, static_cast<std::uint64_t>(walker.number()));
          for (; !run.is_solved(); walker.work()) {
            if (walker.stop_requested()) return std::nullopt;
            run.flip();
          }
          return run.values();
        });
    if (!race.value || !formula.is_satisfied(*race.value)) return false;
    if (threads > 1 && race.winner != winner) return false;
    winner = race.winner;
  }
  return true;
}

}  // namespace

std::vector<Comparison> sat() {
  constexpr std::uint64_t formulas = 6;
  double worst = 0;
  double sum = 0;
  double exponential = 0;
  double lognormal = 0;
  int accepted = 0;
  bool one_winner = true;
  for (std::uint64_t seed = 0; seed < formulas; ++seed) {
    const hd::test::Formula formula = hd::test::planted_formula(50, 210, seed);
    const Errors errors = errors_of(formula);
    worst = std::max(worst, errors.empirical);
    sum += errors.empirical;
    exponential = std::max(exponential, errors.exponential);
    lognormal = std::max(lognormal, errors.lognormal);
    accepted += errors.accepted ? 1 : 0;
    one_winner = one_winner && has_one_winner(formula);
  }
  const int close = close_samples();
  const double mean = sum / static_cast<double>(formulas);
  return {
      {"speed-up of a shifted exponential (10, mean 100) from 500 runs, up to 128 walkers: samples "
       "within 10%",
       "accurate to 384 cores", hd::text(close, " of 100"), "at least 95", verdict(close >= 95)},
      {"least flips of 64 WalkSAT walkers from 500 runs, 6 planted formulas: largest error, mean "
       "error",
       "", hd::text(100 * worst, "%, ", 100 * mean, '%'), "at most 20% and 10%",
       verdict(worst <= 0.20 && mean <= 0.10)},
      {"the same by the shifted exponential and by the lognormal distribution: largest error", "",
       hd::text(100 * exponential, "%, ", 100 * lognormal,
                "%; the test accepts the exponential in ", accepted, " of 6"),
       "none", not_judged("the prediction that is judged is that of the runs themselves")},
      {"race by work of 8 walkers on 1 to 8 threads: one winner, and its model is right", "",
       one_winner ? "yes" : "no", "yes", verdict(one_winner)},
  };
}

}  // namespace report
