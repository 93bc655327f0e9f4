// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors

/// @file
/// 2BP, weight gradients delayed, against the same schedules with whole backward passes.

#include <cstdint>
#include <string>
#include <vector>

#include <heddle/core/text.hpp>
#include <heddle/schedule.hpp>
#include <heddle/simulate.hpp>
#include <heddle/simulate/any_time.hpp>

#include "comparison.hpp"

namespace hd = heddle;

namespace report {

namespace {

/// The four schedules of the paper on N ranks, and the closed forms of what 2BP brings them where
/// F = I = W, as fractions.
struct Case {
  const char* name;
  hd::Orders orders;
  int over, under;
};

std::vector<Case> cases(int n) {
  return {{"naive", hd::schedule::one_f_one_b(n, 1), 3 * n, 2 * n + 1},
          {"GPipe", hd::schedule::gpipe(n, n), 3 * (2 * n - 1), 5 * n - 2},
          {"1F1B-1", hd::schedule::one_f_one_b(n, n), 3 * (2 * n - 1), 4 * n - 1},
          {"1F1B-2", hd::schedule::one_f_one_b(n, 2 * n), 3 * (3 * n - 1), 7 * n - 1}};
}

/// The gain of 1F1B of N on N ranks where the weight gradients of a step take `cheaper` of what
/// they take one by one.
double uneven_gain(int n, double weights, double cheaper) {
  const hd::Orders orders = hd::schedule::one_f_one_b(n, n);
  const double whole =
      hd::simulate(hd::weave(orders), hd::StageCosts{.forward = 1, .backward = 1 + weights})
          .makespan();
  const double split =
      hd::simulate(
          hd::weave(hd::schedule::two_bp(orders)),
          hd::StageCosts{.forward = 1, .backward_input = 1, .backward_weight = weights * cheaper})
          .makespan();
  return whole / split;
}

}  // namespace

std::vector<Comparison> two_bp() {
  using Costs = hd::BasicStageCosts<std::int64_t>;
  bool equal = true;
  std::string on_four;
  for (int n = 2; n <= 32; ++n) {
    for (const Case& one : cases(n)) {
      const auto whole =
          hd::simulate(hd::weave(one.orders), Costs{.forward = 1, .backward = 2}).makespan();
      const auto split =
          hd::simulate(hd::weave(hd::schedule::two_bp(one.orders)),
                       Costs{.forward = 1, .backward_input = 1, .backward_weight = 1})
              .makespan();
      equal = equal && whole * one.under == split * one.over;
      if (n == 4)
        on_four += hd::text(on_four.empty() ? "" : ", ", one.name, ' ',
                            static_cast<double>(whole) / static_cast<double>(split));
    }
  }
  const std::string forms =
      "3N/(2N+1), 3(2N-1)/(5N-2), 3(2N-1)/(4N-1), 3(3N-1)/(7N-1) for naive, GPipe, 1F1B-1, 1F1B-2";
  return {
      {"simulated gain with F = I = W, N 2-32", forms,
       hd::text(equal ? "all equal" : "different", "; N = 4: ", on_four), "all equal",
       verdict(equal)},
      {"the same for 1F1B-1 on 4 ranks with W = 1.6 F, and its W at half price", "1.70x (measured)",
       hd::text(uneven_gain(4, 1.6, 1), "x, ", uneven_gain(4, 1.6, 0.5), 'x'), "none",
       "not reproducible: equal parts cannot gain more than 1.40x on 4 ranks; 1.70x needs dear W, "
       "or "
       "W that are cheaper together, of which no measurement is at hand"},
  };
}

}  // namespace report
