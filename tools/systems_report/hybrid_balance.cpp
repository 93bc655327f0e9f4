// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors

/// @file
/// Hybrid CPU balance: a range divided by measured speed, simulated and by two threads.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <thread>
#include <vector>

#include <heddle/core/text.hpp>
#include <heddle/plan.hpp>

#include "comparison.hpp"
#include "support/simulated_workers.hpp"
#include "support/unequal_threads.hpp"

namespace hd = heddle;

namespace report {

namespace {

/// The gain of balance() over the equal division by two real threads. Rounds in which other
/// programs took more than a twentieth of a core from one of them are neither counted nor learned
/// from; rounds are short, so that a busy machine has others too.
Comparison balanced_threads() {
  using hd::test::UnequalThreads;
  Comparison line{"two real threads, one with 3 times the work per item, against equal shares",
                  "bound 2.0", "", "at least 1.8", ""};
  constexpr std::size_t wanted = 31;
  constexpr std::int64_t items = 4'000;  // equal shares take some milliseconds
  constexpr hd::Seconds patience = 20;
  constexpr double undisturbed = 0.95;
  std::vector<double> gains;
  if (std::thread::hardware_concurrency() >= 2) {
    const hd::Seconds start = hd::steady_seconds();
    hd::plan::SpeedRatios ratios(2);
    int learned = 0;
    while (gains.size() < wanted && hd::steady_seconds() - start < patience) {
      hd::plan::SpeedRatios equal(2), trial = ratios;
      const UnequalThreads::Round theirs = UnequalThreads::run(equal, items);
      const UnequalThreads::Round ours = UnequalThreads::run(trial, items);
      if (ours.least_core < undisturbed) continue;
      ratios = trial;
      if (++learned > 3 && theirs.least_core >= undisturbed)
        gains.push_back(theirs.wall / ours.wall);
    }
  }
  if (gains.size() < wanted) {
    line.ours = hd::text(gains.size(), " undisturbed pairs of rounds");
    line.verdict = "skipped: it needs two cores that no other program uses";
    return line;
  }
  std::sort(gains.begin(), gains.end());
  const double median = gains[wanted / 2];
  line.ours = hd::text(median, "; ", gains.front(), " to ", gains.back(), " in ", wanted,
                       " undisturbed pairs of rounds");
  line.verdict = verdict(median >= 1.8);
  return line;
}

}  // namespace

std::vector<Comparison> hybrid_balance() {
  constexpr int seeds = 1000;
  hd::test::SimulatedRun mean, least{1, 1, 1, 1};
  for (std::uint64_t seed = 0; seed < seeds; ++seed) {
    const auto run = hd::test::simulate_run({3, 1}, 0.05, seed);
    mean.after_three += run.after_three / seeds;
    mean.recovered += run.recovered / seeds;
    mean.gain += run.gain / seeds;
    least.least_after = std::min(least.least_after, run.least_after);
    least.recovered = std::min(least.recovered, run.recovered);
  }
  return {
      {"simulated efficiency at 3:1 with 5% noise after 3 rounds, mean; least of 47 rounds after",
       "0.987 without noise", hd::text(mean.after_three, "; ", least.least_after),
       "0.95; 0.90 in all of 1000 runs",
       verdict(mean.after_three >= 0.95 && least.least_after >= 0.90)},
      {"the same, 4 rounds after the speeds were exchanged, mean; least", "(no figure)",
       hd::text(mean.recovered, "; ", least.recovered), "0.95; 0.90",
       verdict(mean.recovered >= 0.95 && least.recovered >= 0.90)},
      {"simulated gain over equal shares", "bound 2.0", hd::text(mean.gain), "at least 1.9",
       verdict(mean.gain >= 1.9)},
      balanced_threads(),
      {"memory bandwidth reached on a hybrid CPU", "over 90%", "", "none",
       "not reproducible: it needs a CPU with two kinds of core"},
  };
}

}  // namespace report
