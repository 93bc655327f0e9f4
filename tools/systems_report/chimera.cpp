// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors

/// @file
/// Chimera against 1F1B, simulated: equal stages, free transfers, no price on the sum over its two
/// copies of the model.

#include <algorithm>
#include <cstdint>
#include <set>
#include <string>

#include <heddle/core/text.hpp>
#include <heddle/plan.hpp>
#include <heddle/schedule.hpp>
#include <heddle/simulate.hpp>

#include "comparison.hpp"

namespace hd = heddle;

namespace report {

namespace {

using Costs = hd::BasicStageCosts<std::int64_t>;

std::int64_t step(const hd::Orders& orders, const Costs& costs) {
  return hd::simulate(hd::weave(orders), costs).makespan();
}

/// "16, 36, 76" and whether they are as expected.
struct Steps {
  std::string ours, expected;
  bool equal = true;

  void add(std::int64_t found, std::int64_t wanted) {
    const char* comma = ours.empty() ? "" : ", ";
    ours += hd::text(comma, found);
    expected += hd::text(comma, wanted);
    equal = equal && found == wanted;
  }
};

/// One microbatch for every rank: the paper's case.
Comparison one_unit() {
  const Costs costs{.forward = 1, .backward = 2};
  Steps chimera, plain;
  std::string gains;
  struct Case {
    int ranks;
    std::int64_t chimera, plain;
  };
  for (const auto& [d, two_ways, one_way] :
       {Case{4, 16, 21}, Case{8, 36, 45}, Case{16, 76, 93}, Case{32, 156, 189}}) {
    const auto ours = step(hd::schedule::chimera_orders(d, d), costs);
    const auto theirs = step(hd::schedule::one_f_one_b_orders(d, d), costs);
    gains += hd::text(gains.empty() ? "" : ", ",
                      static_cast<double>(theirs) / static_cast<double>(ours), 'x');
    chimera.add(ours, two_ways);
    plain.add(theirs, one_way);
  }
  return {"simulated step in F for D = N = 4, 8, 16, 32 and B = 2F, against 1F1B",
          hd::text(chimera.expected, " against ", plain.expected),
          hd::text(chimera.ours, " against ", plain.ours, ": ", gains), "all equal",
          verdict(chimera.equal && plain.equal)};
}

/// Several units: where concatenation keeps its bubble, and where doubled forwards are needed.
Comparison four_units_of_equal_work() {
  const Costs costs{.forward = 1, .backward = 1};
  Steps steps;
  steps.add(step(hd::schedule::chimera_orders(8, 32), costs), 70);
  steps.add(step(hd::schedule::one_f_one_b_orders(8, 32), costs), 78);
  return {"the same for D=8 N=32 and B = F: Chimera, 1F1B", steps.expected, steps.ours, "equal",
          verdict(steps.equal)};
}

Comparison four_units() {
  const Costs costs{.forward = 1, .backward = 2};
  Steps direct, doubled, mended, plain;
  struct Case {
    int ranks;
    std::int64_t direct, doubled, mended, plain;
  };
  for (const auto& [d, in_a_row, in_twos, by_list, one_way] :
       {Case{4, 58, 51, 52, 57}, Case{8, 126, 105, 108, 117}, Case{16, 262, 213, 220, 237}}) {
    direct.add(step(hd::schedule::chimera_orders(d, 4 * d), costs), in_a_row);
    doubled.add(step(hd::schedule::chimera_orders(d, 4 * d, 1, true), costs), in_twos);
    mended.add(
        hd::plan::coordinate(hd::schedule::chimera_orders(d, 4 * d), costs, {.cap = d}).makespan,
        by_list);
    plain.add(step(hd::schedule::one_f_one_b_orders(d, 4 * d), costs), one_way);
  }
  return {
      "the same for D = 4, 8, 16, N = 4D and B = 2F: concatenated, doubled forwards (twice the "
      "activations), concatenated and reordered, 1F1B",
      "(no figure)", hd::text(direct.ours, "; ", doubled.ours, "; ", mended.ours, "; ", plain.ours),
      hd::text(direct.expected, "; ", doubled.expected, "; ", mended.expected, "; ",
               plain.expected),
      verdict(direct.equal && doubled.equal && mended.equal && plain.equal)};
}

/// The variant that choose_chimera() takes, over 1F1B, in the memory of Chimera and in twice that.
Comparison chosen() {
  double least = 1e300, most = 0;
  int cases = 0;
  for (const int d : {2, 4, 8, 16})
    for (const int n : std::set{1, d / 2, d, d + 1, 2 * d, 4 * d})
      for (const double backward : {1.0, 1.5, 2.0, 3.0})
        for (const double latency : {0.0, 0.25})
          for (const int most_live : {d, 2 * d})
            for (const bool may_halve : {false, true}) {
              const hd::StageCosts costs{.forward = 1, .backward = backward, .latency = latency};
              const double plain =
                  hd::simulate(hd::schedule::one_f_one_b({.stages = d, .microbatches = n}), costs)
                      .makespan();
              const double ours = hd::plan::choose_chimera({.stages = d,
                                                            .microbatches = n,
                                                            .may_halve = may_halve,
                                                            .most_live = most_live},
                                                           costs)
                                      .makespan;
              least = std::min(least, plain / ours);
              most = std::max(most, plain / ours);
              ++cases;
            }
  return {"simulated speed-up over 1F1B of the variant that is chosen", "1.16-2.34x (measured)",
          hd::text(least, " to ", most, " in ", cases, " cases"), "never below 1.0",
          verdict(least >= 1)};
}

Comparison activations() {
  bool equal = true;
  for (const int d : {2, 4, 8, 16, 32}) {
    const auto timeline = hd::simulate(hd::schedule::chimera({.stages = d, .microbatches = 2 * d}),
                                       Costs{.forward = 1, .backward = 2});
    for (int r = 0; r < d; ++r)
      equal = equal && hd::peak_parts(timeline, hd::Rank{r}, hd::role::saved) ==
                           static_cast<std::uint64_t>(d / 2 + 1 + std::min(r, d - 1 - r));
  }
  return {"activations kept, from the outer ranks to the middle, D = 2 to 32", "D/2+1 to D",
          equal ? "equal on every rank" : "different", "equal", verdict(equal)};
}

}  // namespace

std::vector<Comparison> chimera() {
  return {
      one_unit(),
      four_units_of_equal_work(),
      four_units(),
      chosen(),
      activations(),
      {"measured throughput on 2,048 nodes", "1.16-2.34x", "", "none",
       "not reproducible: it needs the authors' machine and their baselines"},
  };
}

}  // namespace report
