// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
// links: heddle::core

/// @file
/// balance() against the equal division: two real threads, one with three times the work per item,
/// and simulated workers at 3:1 with 5 % noise. A perfect division would be 2 times as fast.

#include <cstdint>
#include <iostream>
#include <vector>

#include <heddle/plan.hpp>

#include "../support.hpp"
#include "support/simulated_workers.hpp"
#include "support/unequal_threads.hpp"

namespace hd = heddle;
using hd::test::UnequalThreads;

namespace {

constexpr int rounds = 61;
constexpr const char* name = "pattern/balance";

/// Both ways take turns round by round, and in who goes first.
void run_threads() {
  hd::plan::SpeedRatios ratios(2);
  for (int i = 0; i < 3; ++i) UnequalThreads::run(ratios);  // learns; what that costs is simulated
  std::vector<double> equal, ours, equal_processor, ours_processor;
  for (int i = 0; i < rounds; ++i) {
    UnequalThreads::Round round[2];
    for (const int which : {i % 2, 1 - i % 2}) {
      hd::plan::SpeedRatios fresh(2);
      round[which] = UnequalThreads::run(which == 0 ? fresh : ratios);
    }
    bench::require_equal("the sum over all items", round[1].sum, round[0].sum);
    equal.push_back(round[0].wall);
    ours.push_back(round[1].wall);
    equal_processor.push_back(round[0].processor);
    ours_processor.push_back(round[1].processor);
  }
  std::cout << UnequalThreads::items << " items, two threads, " << rounds
            << " interleaved pairs of rounds\n";
  bench::print_ratio(name, "equal_split", bench::ratios(equal, ours));
  bench::print_ratio(name, "equal_split_processor_time",
                     bench::ratios(equal_processor, ours_processor));
}

void run_simulated() {
  std::vector<double> gains, after_three, least_after, recovered;
  for (std::uint64_t seed = 0; seed < 1000; ++seed) {
    const auto run = hd::test::simulate_run({3, 1}, 0.05, seed);
    gains.push_back(run.gain);
    after_three.push_back(run.after_three);
    least_after.push_back(run.least_after);
    recovered.push_back(run.recovered);
  }
  bench::print_ratio(name, "equal_split_simulated", bench::summarise(gains));
  bench::print_value(name, "efficiency_after_3", bench::summarise(after_three), "of_1");
  bench::print_value(name, "least_efficiency_after", bench::summarise(least_after), "of_1");
  bench::print_value(name, "efficiency_4_after_change", bench::summarise(recovered), "of_1");
}

}  // namespace

int main() {
  return bench::status_of(name, [] {
    run_threads();
    run_simulated();
  });
}
