// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors

/// @file
/// CO2: local steps beside an average that is one round late: times simulated, and training on
/// threads against serial references.

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <optional>
#include <vector>

#include <heddle/core/text.hpp>
#include <heddle/simulate/costs.hpp>
#include <heddle/simulate/simulate.hpp>
#include <heddle/systems/co2/local_steps.hpp>
#include <heddle/systems/co2/local_updates.hpp>

#include "comparison.hpp"
#include "support/local_problems.hpp"
#include "support/rounds.hpp"

namespace hd = heddle;

namespace report {

namespace {

using hd::test::LocalProblem;
using hd::test::Vector;

/// Returns the simulated time of a local step with its share of the sum. A local step alone takes
/// 1, and a ring's all-reduce takes `sum`.
double co2_step_time(int ranks, int steps, int delay, double sum) {
  constexpr hd::Bytes block = 64;
  hd::systems::LocalStepsOptions options{.ranks = ranks, .steps = steps, .delay = delay};
  options.bytes = block * static_cast<hd::Bytes>(ranks);
  const double hops = 2.0 * (ranks - 1);
  const hd::Schedule list = hd::systems::local_steps(options);
  return hd::simulate(list, hd::StageCosts{.user = 1, .per_byte = sum / hops / block}).makespan() /
         steps;
}

double co2_gain(int ranks, int steps, double sum) {
  return co2_step_time(ranks, 1, 0, sum) / co2_step_time(ranks, steps, 1, sum);
}

bool is_close(double a, double b) { return std::abs(a - b) <= 1e-9 * std::abs(b); }

/// Returns the number of cases whose simulated time is max(c, A / steps), of 240.
int exact_step_times() {
  int exact = 0;
  for (int ranks = 2; ranks <= 9; ++ranks)
    for (const int steps : {1, 2, 4, 12, 48})
      for (const double sum : {0.0, 0.5, 4.0, 9.57, 12.4, 100.0})
        exact += is_close(co2_step_time(ranks, steps, 1, sum), std::max(1.0, sum / steps)) ? 1 : 0;
  return exact;
}

/// How training over threads compares with serial references.
struct LocalTraining {
  double error = 0;      ///< largest relative difference from a serial run of the ranks
  double loss = 0;       ///< largest loss, relative to that of data parallelism
  double unbounded = 0;  ///< loss without penalty and clip over the loss at the start
  double bounded = 0;    ///< the same with both
};

LocalTraining train_locally() {
  LocalTraining result;
  for (const std::size_t hidden : {std::size_t{0}, std::size_t{4}}) {
    const LocalProblem problem(4, hidden, hidden == 0 ? 0.05 : 0.1);
    const int all = hidden == 0 ? 240 : 1200;
    const double parallel = problem.loss(problem.data_parallel(all));
    for (const int steps : {4, 12}) {
      const int rounds = all / steps;
      const std::vector<Vector> found = problem.run_on_threads(steps, 1, rounds, {});
      const Vector serial = problem.serial(steps, 1, rounds, {});
      for (const Vector& x : found)
        result.error = std::max(result.error, hd::test::largest_difference(x, serial));
      result.loss = std::max(result.loss, problem.loss(found[0]) / parallel);
    }
  }
  const LocalProblem network(4, 4, 0.1);
  const double start = network.loss(network.start());
  const auto loss = [&](const hd::systems::OuterUpdate& outer) {
    return network.loss(network.run_on_threads(12, 1, 60, outer)[0]) / start;
  };
  result.unbounded = loss({.rate = 2, .gap_penalty = false, .clip = 1e300});
  result.bounded = loss({.rate = 2});
  return result;
}

}  // namespace

std::vector<Comparison> co2() {
  // All-reduce times in local steps, from the published throughput of AdamW on 8, 16 and 128 GPUs.
  constexpr double at_16 = 9.57;
  constexpr double at_128 = 12.4;
  const double gains[] = {co2_gain(16, 48, at_16), co2_gain(128, 48, at_128),
                          co2_gain(128, 12, at_128)};
  const double scaling = co2_step_time(16, 48, 1, at_16) / co2_step_time(128, 48, 1, at_128);
  const int exact = exact_step_times();
  const LocalTraining trained = train_locally();
  const std::optional<double> overlap =
      hd::test::measured_overlap(hd::test::seconds_of_round_on_threads, 0.9, {.print = false});
  return {
      {"simulated time of a local step, ring of P=2 to 9, tau=1 to 48, A=0 to 100 c", "",
       hd::text(exact, " of 240 are max(c, A/tau)"), "all", verdict(exact == 240)},
      {"simulated gain over an all-reduce in every step: P=16 tau=48 A=9.57 c; P=128 tau=48 A=12.4 "
       "c; P=128 tau=12 A=12.4 c (A from the published AdamW figures)",
       "13.4 (P=128, tau=48)", hd::text(gains[0], "; ", gains[1], "; ", gains[2]), "none",
       not_judged("(c+A)/max(c, A/tau) follows from the line above and from the chosen A")},
      {"simulated throughput of a rank at P=128 over P=16, tau=48", "1.06", hd::text(scaling),
       "none", not_judged("both all-reduces hide completely, so it is 1")},
      {"sum of four hops of 4.5 ms beside four local steps of 6 ms on three threads: hidden share",
       "", overlap ? hd::text(*overlap) : "", "at least 0.9",
       overlap ? verdict(*overlap >= 0.9) : hd::text("skipped: ", hd::test::no_result)},
      {"parameters of 4 ranks against a serial run of all of them: largest relative difference", "",
       hd::text(trained.error), "at most 1e-12", verdict(trained.error <= 1e-12)},
      {"loss over that of data parallelism after as many steps, least squares and a network, tau=4 "
       "and 12: largest",
       "", hd::text(trained.loss), "at most 1.03", verdict(trained.loss <= 1.03)},
      {"loss over the loss at the start with an outer rate of 2: without penalty and clip; with "
       "both",
       "", hd::text(trained.unbounded, "; ", trained.bounded), "above 1e6; below 1",
       verdict(!(trained.unbounded <= 1e6) && trained.bounded < 1)},
      {"words per second and perplexity", "304,736 words/s; 7.39", "", "none",
       "not reproducible: they need 128 A100 on 80 Gbit/s and the models"},
  };
}

}  // namespace report
