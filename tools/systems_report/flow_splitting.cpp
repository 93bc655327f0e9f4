// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors

/// @file
/// Flow splitting (Ethereal) against spraying and hashing, and C4P's planner of whole flows.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include <heddle/core/text.hpp>
#include <heddle/machine.hpp>
#include <heddle/plan.hpp>
#include <heddle/schedule.hpp>
#include <heddle/simulate.hpp>
#include <heddle/systems/c4/path_plan.hpp>
#include <heddle/systems/flow_splitting/flow_splitting.hpp>

#include "../../benchmarks/collective/flow_splitting/cases.hpp"
#include "comparison.hpp"

namespace hd = heddle;

namespace report {

namespace {

using uplinks::AllToAll;
using uplinks::cases;

/// The fullest of the links over the ideal, when `flows` of one leaf are hashed over 16 spines; the
/// mean of 20,000 seeds.
double hashed_load(std::size_t flows) {
  constexpr int seeds = 20000;
  double sum = 0;
  for (std::uint64_t seed = 0; seed < seeds; ++seed) {
    std::vector<int> load(16, 0);
    for (const std::uint32_t spine : hd::systems::hash_paths(flows, 16, seed)) ++load[spine];
    sum += std::ranges::max(load);
  }
  return sum / seeds / (static_cast<double>(flows) / 16);
}

/// Whether planned flows of one leaf load no link with more than flows / spines, rounded up, for up
/// to 64 flows and 16 spines, also after each of the spines but one has died, with no flow moved
/// but those of the dead.
bool planner_is_exact() {
  for (std::uint32_t flows = 1; flows <= 64; ++flows)
    for (std::uint32_t s = 1; s <= 16; ++s) {
      hd::systems::PathPlan plan(std::vector<hd::systems::Flow>(flows, {0, 1}),
                                 static_cast<int>(s));
      if (plan.max_load() != (flows + s - 1) / s) return false;
      for (std::uint32_t dead = s - 1; dead > 0; --dead) {
        const auto its = static_cast<std::size_t>(std::ranges::count(plan.spines(), dead));
        if (plan.lose(dead).size() != its || plan.max_load() != (flows + dead - 1) / dead)
          return false;
      }
    }
  return true;
}

}  // namespace

std::vector<Comparison> flow_splitting() {
  std::vector<Comparison> lines;
  std::vector<std::size_t> exact;
  for (const hd::systems::SplitRule rule : uplinks::rules)
    exact.push_back(uplinks::exact_cases(rule));
  lines.push_back(
      {"largest load, pieces and coverage for r flows over s links, r, s <= 64, by "
       "equal pieces, whole flows first, filling in turn",
       "r f/s; r s/g, r - q + q s/gcd(q, s) with q = r mod s, r + s - g pieces",
       hd::text(exact[0], ", ", exact[1], ", ", exact[2], " of ", cases, " exact"), "all",
       verdict(std::ranges::count(exact, cases) == 3)});
  for (const int hosts : {1, 2}) {
    const AllToAll each(hosts);
    const hd::Seconds sprayed = each.run(each.sprayed());
    const hd::Seconds ours = each.run(each.split(hd::systems::SplitRule::fill_in_turn));
    hd::Seconds worst = ours;
    for (const hd::systems::SplitRule rule : uplinks::rules)
      worst = std::max(worst, each.run(each.split(rule)));
    const double hashed = each.hashed() / ours;
    const std::string shape = hd::text("4 leaves x 4 spines, ", hosts, " ranks a leaf");
    lines.push_back({hd::text("simulated all-to-all, ", shape,
                              ", completion over spraying, worst "
                              "of the rules"),
                     "as good as ideal multipath", hd::text(worst / sprayed, 'x'), "at most 1.02",
                     verdict(worst <= 1.02 * sprayed)});
    lines.push_back({"the same, hashing whole flows over filling in turn, mean of 200 seeds", "",
                     hd::text(hashed, 'x'), "at least 1.5", verdict(hashed >= 1.5)});
  }
  const double few = hashed_load(16);
  const double many = hashed_load(64);
  lines.push_back({"fullest link over the ideal by hashing, 16 and 64 flows over 16 spines",
                   "3.08x, 1.96x", hd::text(few, "x, ", many, 'x'), "at least 1.9",
                   verdict(few >= 1.9 && many >= 1.9)});
  lines.push_back(
      {"planned whole flows of one leaf, up to 64 over 16 spines, which die one after "
       "another",
       "ceil(flows / spines)",
       planner_is_exact() ? "equal, only the dead's flows move" : "not equal", "equal",
       verdict(planner_is_exact())});
  lines.push_back({"completion against packet spraying with congestion control", "up to -30%", "",
                   "none",
                   "not reproducible: links here serve whole messages, first come, first served; "
                   "there are no packets, queues or losses"});
  return lines;
}

}  // namespace report
