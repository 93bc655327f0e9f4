// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors

/// @file
/// Feedforward solving: sweeps over a chain of equations against a plain loop.

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include <heddle/core.hpp>
#include <heddle/execute/thread_transport.hpp>
#include <heddle/pattern.hpp>

#include "comparison.hpp"

namespace hd = heddle;

namespace report {

namespace {

using Before = hd::pattern::ValuesBefore<double>;
using Rule = double (*)(int, const Before&);
constexpr int count = 200;

double contracting(int i, const Before& before) {
  const double input = hd::Random(7, "input").normal(static_cast<std::uint64_t>(i));
  return std::tanh((i == 0 ? 0.0 : 0.9 * before[i - 1]) + input);
}
double chaotic(int i, const Before& before) {
  return i == 0 ? 0.3 : 3.9 * before[i - 1] * (1 - before[i - 1]);
}
double non_smooth(int i, const Before& before) {
  const double input = hd::Random(8, "input").normal(static_cast<std::uint64_t>(i));
  return std::floor(16 * ((i == 0 ? 0.0 : std::abs(before[i - 1])) + input)) / 16;
}

std::vector<double> loop(Rule rule) {
  std::vector<double> values(count);
  for (int i = 0; i < count; ++i)
    values[static_cast<std::size_t>(i)] = rule(i, {values.data(), values.data(), i, i});
  return values;
}

hd::Equations<double, Rule> chain(Rule rule) { return {count, 0.0, rule}; }

/// Returns whether all sweeps, with 1 to 4 threads, give the bits of the loop within 200 sweeps and
/// 200 * 201 / 2 evaluations.
bool is_the_loop(Rule rule) {
  const std::vector<double> expected = loop(rule);
  for (const hd::pattern::Sweep sweep :
       {hd::pattern::Sweep::gauss_seidel, hd::pattern::Sweep::jacobi,
        hd::pattern::Sweep::jacobi_gauss_seidel, hd::pattern::Sweep::gauss_seidel_jacobi})
    for (int threads = 1; threads <= 4; ++threads) {
      const auto x =
          hd::pattern::fixed_point(chain(rule), {.sweep = sweep, .threads = threads, .block = 20});
      if (x.values != expected || x.sweeps > count || x.evaluations > count * (count + 1) / 2)
        return false;
    }
  return true;
}

/// The sweeps over ranks that are threads, against those on threads.
struct OnRanks {
  bool same = true;           ///< bits, sweeps and evaluations
  std::int64_t received = 0;  ///< the most values that a rank got
  int sweeps = 0;
};

OnRanks sweeps_on_ranks(Rule rule, int ranks) {
  OnRanks result;
  for (const hd::pattern::Sweep sweep :
       {hd::pattern::Sweep::jacobi_gauss_seidel, hd::pattern::Sweep::gauss_seidel_jacobi,
        hd::pattern::Sweep::jacobi}) {
    const auto expected =
        hd::pattern::fixed_point(chain(rule), {.sweep = sweep, .threads = ranks, .block = 20});
    std::vector<hd::pattern::FixedPoint<double>> all(static_cast<std::size_t>(ranks));
    hd::run_threads(ranks, [&](hd::ThreadTransport& transport) {
      all[+transport.rank()] = hd::pattern::fixed_point(transport, chain(rule),
                                                        {.sweep = sweep, .block = 20, .reach = 1});
    });
    result.sweeps = expected.sweeps;
    result.received = 0;
    for (const auto& x : all) {
      result.same = result.same && x.values == expected.values && x.sweeps == expected.sweeps &&
                    x.evaluations == expected.evaluations;
      result.received = std::max(result.received, x.received);
    }
  }
  return result;
}

/// Returns the number of sweeps after which all values are within 1e-10 of the loop's.
int sweeps_until_near(Rule rule, hd::pattern::Sweep sweep) {
  const std::vector<double> expected = loop(rule);
  for (int most = 1;; ++most) {
    const auto x =
        hd::pattern::fixed_point(chain(rule), {.sweep = sweep, .block = 20, .most_sweeps = most});
    double error = 0;
    for (std::size_t i = 0; i < expected.size(); ++i)
      error = std::max(error, std::abs(x.values[i] - expected[i]));
    if (error <= 1e-10 || x.converged) return most;
  }
}

}  // namespace

std::vector<Comparison> fixed_point() {
  const bool same = is_the_loop(contracting) && is_the_loop(chaotic) && is_the_loop(non_smooth);
  const int near = sweeps_until_near(contracting, hd::pattern::Sweep::jacobi);
  const int blocks = sweeps_until_near(contracting, hd::pattern::Sweep::jacobi_gauss_seidel);
  const hd::pattern::FixedPoint<double> all_bits = hd::pattern::fixed_point(chain(contracting));
  const int bits = all_bits.sweeps;
  const double gain = static_cast<double>(count) / bits;
  const double even = static_cast<double>(all_bits.evaluations) / count;
  const int turbulent = hd::pattern::fixed_point(chain(chaotic)).sweeps;
  const OnRanks tanh_on_ranks = sweeps_on_ranks(contracting, 4);
  const OnRanks logistic_on_ranks = sweeps_on_ranks(chaotic, 4);
  const OnRanks kinks_on_ranks = sweeps_on_ranks(non_smooth, 4);
  const bool ranks_same = tanh_on_ranks.same && logistic_on_ranks.same && kinks_on_ranks.same;
  return {
      {"chains of 200 equations (contracting, chaotic, with kinks), four sweeps, 1 to 4 threads",
       "", same ? "the bits of a plain loop in at most 200 sweeps" : "other values", "equal",
       verdict(same)},
      {"the same on 4 ranks against 4 threads, three sweeps", "",
       ranks_same ? "the same bits, sweeps and evaluations" : "other values", "equal",
       verdict(ranks_same)},
      {"tanh(0.9 s + u) on 4 ranks: the most values that a rank gets in all Jacobi sweeps", "",
       hd::text(tanh_on_ranks.received),
       hd::text("at most one a sweep and one an equation: ", tanh_on_ranks.sweeps - 1 + count),
       verdict(tanh_on_ranks.received <= tanh_on_ranks.sweeps - 1 + count)},
      {"tanh(0.9 s + u), 200 equations: sweeps until 1e-10, Jacobi", "", hd::text(near),
       "at most 65", verdict(near <= 65)},
      {"the same in blocks of 20, in order inside a block", "", hd::text(blocks),
       hd::text("fewer than ", near), verdict(blocks < near)},
      {"the logistic map with 3.9: sweeps for 200 equations", "", hd::text(turbulent),
       "200: no gain", verdict(turbulent == count)},
      {"steps of a plain loop over sweeps until no bit changes, tanh(0.9 s + u), a worker for each "
       "equation",
       "2.1-26x",
       hd::text(count, " / ", bits, " = ", gain, "x; ", all_bits.evaluations,
                " evaluations where a loop has ", count, ", which break even at ", even,
                " equal workers"),
       "above 2.1", verdict(gain > 2.1)},
  };
}

}  // namespace report
