// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors

/// @file
/// Chimera against 1F1B, simulated: equal stages, free transfers, no price on the sum over its two
/// copies of the model.

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <iterator>
#include <map>
#include <set>
#include <string>
#include <vector>

#include <heddle/core/text.hpp>
#include <heddle/plan.hpp>
#include <heddle/schedule.hpp>
#include <heddle/simulate.hpp>
#include <heddle/simulate/any_time.hpp>
#include <heddle/systems/chimera/choose_chimera.hpp>

#include "comparison.hpp"

namespace hd = heddle;

namespace report {

namespace {

using Costs = hd::BasicStageCosts<std::int64_t>;

std::int64_t step(const hd::Orders& orders, const Costs& costs) {
  return hd::simulate(hd::weave(orders), costs).makespan();
}

/// The step of Chimera in the order of the paper's slots, found without the library: microbatch i
/// of each direction, unit by unit, has its forward of the stage s in the slot 2i + s of its unit
/// and its backward in 2i + 2D - 1 - s, and a unit begins 2D slots after the one before. A rank
/// works in the order of its slots, as soon as the microbatch is there.
std::int64_t step_of_slots(int d, int n, const Costs& costs) {
  struct Work {
    int slot, way, item, stage;  // the up direction (way 1) has stage s on rank d - 1 - s
    bool forward;
  };
  std::vector<Work> all;
  const int half = n / 2;
  for (const int way : {0, 1})
    for (int i = 0; i < half; ++i) {
      const int base = 2 * d * (i / (d / 2)) + 2 * (i % (d / 2));
      for (int s = 0; s < d; ++s) {
        all.push_back({base + s, way, i, s, true});
        all.push_back({base + 2 * d - 1 - s, way, i, s, false});
      }
    }
  std::ranges::stable_sort(all, {}, &Work::slot);  // all that a slot waits for is in earlier ones
  std::map<std::array<int, 4>, std::int64_t> done;
  std::vector<std::int64_t> free(static_cast<std::size_t>(d), 0);
  for (const auto& [slot, way, item, stage, forward] : all) {
    const int rank = way == 0 ? stage : d - 1 - stage;
    std::int64_t& now = free[static_cast<std::size_t>(rank)];
    // What it waits for: the stage before or behind, and the last stage's own forward.
    const int from = forward ? stage - 1 : stage + 1;
    const bool turns = !forward && from == d;
    if (turns)
      now = std::max(now, done.at({way, item, stage, 1}));
    else if (from >= 0)
      now = std::max(now, done.at({way, item, from, forward ? 1 : 0}));
    now += forward ? costs.forward : costs.backward;
    done[{way, item, stage, forward ? 1 : 0}] = now;
  }
  return std::ranges::max(free);
}

/// 1F1B's step: every rank works N(F + B), and D - 1 of both fill and drain the pipeline.
std::int64_t step_of_1f1b(int d, int n, const Costs& costs) {
  return (n + d - 1) * (costs.forward + costs.backward);
}

/// The least step of two opposite pipelines over D ranks: the first forward takes (D/2 - 1)F to the
/// ranks in the middle, and their last backward still has (D/2 - 1)B to go.
std::int64_t least_step(int d, int n, const Costs& costs) {
  return (n + d / 2 - 1) * (costs.forward + costs.backward);
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
  for (const int d : {4, 8, 16, 32}) {
    const auto ours = step(hd::schedule::chimera(d, d), costs);
    const auto theirs = step(hd::schedule::one_f_one_b(d, d), costs);
    gains += hd::text(gains.empty() ? "" : ", ",
                      static_cast<double>(theirs) / static_cast<double>(ours), 'x');
    chimera.add(ours, step_of_slots(d, d, costs));
    plain.add(theirs, step_of_1f1b(d, d, costs));
  }
  return {
      "simulated step in F for D = N = 4, 8, 16, 32 and B = 2F, against 1F1B, and the steps of "
      "the paper's slots and of (N+D-1)(F+B)",
      hd::text(chimera.expected, " against ", plain.expected),
      hd::text(chimera.ours, " against ", plain.ours, ": ", gains), "all equal",
      verdict(chimera.equal && plain.equal)};
}

/// Several units of equal work, which keep the bubble of one.
Comparison four_units_of_equal_work() {
  const Costs costs{.forward = 1, .backward = 1};
  Steps steps;
  steps.add(step(hd::schedule::chimera(8, 32), costs), step_of_slots(8, 32, costs));
  steps.add(step(hd::schedule::one_f_one_b(8, 32), costs), step_of_1f1b(8, 32, costs));
  return {"the same for D=8 N=32 and B = F: Chimera, 1F1B", steps.expected, steps.ours, "equal",
          verdict(steps.equal)};
}

/// Several units where B = 2F: what concatenation costs and doubled forwards bring back.
std::vector<Comparison> four_units() {
  const Costs costs{.forward = 1, .backward = 2};
  Steps direct, doubled, plain;
  std::string mended, room;
  bool between = true;
  for (const int d : {4, 8, 16}) {
    const int n = 4 * d;
    direct.add(step(hd::schedule::chimera(d, n), costs), step_of_slots(d, n, costs));
    doubled.add(step(hd::schedule::chimera(d, n, 1, true), costs), least_step(d, n, costs));
    plain.add(step(hd::schedule::one_f_one_b(d, n), costs), step_of_1f1b(d, n, costs));
    const auto by_list =
        hd::plan::coordinate(hd::schedule::chimera(d, n), costs, {.cap = d}).makespan;
    const std::int64_t least = least_step(d, n, costs), most = step_of_1f1b(d, n, costs);
    const char* comma = mended.empty() ? "" : ", ";
    mended += hd::text(comma, by_list);
    room += hd::text(comma, least, " to ", most - 1);
    between = between && least <= by_list && by_list < most;
  }
  return {
      {"the same for D = 4, 8, 16, N = 4D and B = 2F: concatenated, against the slots; doubled "
       "forwards (twice the activations), against (N+D/2-1)(F+B), the least of two opposite "
       "pipelines; 1F1B",
       "(no figure)", hd::text(direct.ours, "; ", doubled.ours, "; ", plain.ours),
       hd::text(direct.expected, "; ", doubled.expected, "; ", plain.expected),
       verdict(direct.equal && doubled.equal && plain.equal)},
      {"the same of concatenated units that the list scheduler reorders, in their memory (no "
       "independent reference for the steps: the least there can be and 1F1B enclose them)",
       "(no figure)", mended, room, verdict(between)},
  };
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
                  hd::simulate(hd::schedule::one_f_one_b({.ranks = d, .microbatches = n}), costs)
                      .makespan();
              const double ours = hd::systems::choose_chimera({.ranks = d,
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
          hd::text(least, " to ", most, " in ", cases, " cases"), "none",
          not_judged("1F1B is one of the variants")};
}

Comparison activations() {
  bool equal = true;
  for (const int d : {2, 4, 8, 16, 32}) {
    const auto timeline = hd::simulate(hd::schedule::chimera({.ranks = d, .microbatches = 2 * d}),
                                       Costs{.forward = 1, .backward = 2});
    for (int r = 0; r < d; ++r)
      equal = equal && hd::schedule::peak(timeline, hd::Rank{r}, hd::role::saved).parts ==
                           static_cast<std::uint64_t>(d / 2 + 1 + std::min(r, d - 1 - r));
  }
  return {"activations kept, from the outer ranks to the middle, D = 2 to 32", "D/2+1 to D",
          equal ? "equal on every rank" : "different", "equal", verdict(equal)};
}

}  // namespace

std::vector<Comparison> chimera() {
  std::vector<Comparison> lines{one_unit(), four_units_of_equal_work()};
  std::ranges::move(four_units(), std::back_inserter(lines));
  lines.insert(lines.end(),
               {
                   chosen(),
                   activations(),
                   {"measured throughput on 2,048 nodes", "1.16-2.34x", "", "none",
                    "not reproducible: it needs the authors' machine and their baselines"},
               });
  return lines;
}

}  // namespace report
