// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors

/// @file
/// Holmes: groups within one kind of network against groups that span several, modelled, and
/// executed by threads behind links of chosen rate.

#include <cmath>
#include <string>
#include <vector>

#include <heddle/core/text.hpp>
#include <heddle/core/units.hpp>
#include <heddle/plan/plan_problem.hpp>
#include <heddle/systems/frontier_3d/frontier.hpp>
#include <heddle/systems/holmes/holmes.hpp>

#include "comparison.hpp"
#include "support/network_cards.hpp"
#include "support/waiting_plans.hpp"

namespace hd = heddle;

namespace report {

std::vector<Comparison> holmes() {
  using enum hd::test::Card;
  using Cards = std::vector<hd::test::Card>;
  const hd::plan::Profile profile = hd::test::gpt_3_6b();
  // The simulated step of the plan that a planner finds for 4 nodes of 8.
  std::string stages;
  const auto step = [&](const auto& planner, const Cards& cards) {
    const hd::Machine machine = hd::test::cluster(cards, 8);
    const hd::plan::PlanProblem problem(profile, machine,
                                        {.batch = 768, .microbatches = {16, 24, 48}});
    const hd::plan::FoundPlan found = planner.search(problem);
    stages = hd::text(found.plan->stages.size(), " stages");
    return hd::plan::simulated_step(*found.plan, problem);
  };
  const hd::systems::Holmes planner;
  const double fast = step(planner, {infiniband, infiniband, infiniband, infiniband});
  const double slow = step(planner, {ethernet, ethernet, ethernet, ethernet});
  const double mixed = step(planner, {infiniband, roce, infiniband, roce});
  const std::string mixed_stages = stages;
  const double hybrid = step(planner, {infiniband, infiniband, roce, roce});
  // A planner that takes ranks in their order, whatever the cards.
  const double blind = step(hd::systems::Frontier3D{}, {infiniband, roce, infiniband, roce});
  std::vector<Comparison> lines;
  lines.push_back(
      {"GPT of 3.6B, 4 nodes of 8, its own plans, simulated: 2 InfiniBand and 2 RoCE "
       "nodes over Ethernet alone",
       "1.22x (recalled)", hd::text(slow / hybrid, "x"), "at least 1.15x",
       verdict(slow / hybrid >= 1.15)});
  lines.push_back(
      {"the same over InfiniBand alone", "0.76x (recalled)", hd::text(fast / hybrid, "x"), "none",
       not_judged("the model lacks what slows RoCE, so a bar below 0.76 says nothing")});
  lines.push_back({"the same nodes in another order over their best order", "",
                   hd::text(hybrid / mixed, "x, ", mixed_stages), "within 1 %",
                   verdict(std::abs(hybrid / mixed - 1) <= 0.01)});
  lines.push_back({"in this order over the plan of Frontier 3D, which takes ranks in their order",
                   "", hd::text(blind / mixed, "x, ", stages), "at least 1.1x",
                   verdict(blind / mixed >= 1.1)});

  std::vector<hd::Device> devices(8, hd::Device{"gpu"});
  for (std::size_t r = 0; r < 4; ++r) devices[r] = {.name = "faster", .speed = 1.2};
  const hd::Machine machine = hd::test::cluster({infiniband, infiniband, roce, roce}, 2, devices);
  const hd::plan::Profile equal = hd::test::equal_layers(44, 1e-3, 1000, 1000);
  const hd::plan::PlanProblem problem(equal, machine, {.batch = 16, .microbatches = {4}});
  const double even = hd::systems::Holmes{.even = true}.search(problem).formula;
  const double uneven = hd::systems::Holmes{}.search(problem).formula;
  lines.push_back({"uneven stages over even ones, one network 20 % faster (bound 1.10)", "",
                   hd::text(even / uneven, "x"), "at least 1.03x", verdict(even / uneven >= 1.03)});

  // Threads with stages that wait, and links of 20 Mbit/s between the two pairs.
  constexpr hd::Bytes gradient = 400'000;
  auto plans =
      hd::test::holmes_and_rival(hd::test::two_pairs(20e6 / 8, 100e-6, false), gradient, 5e-3);
  const auto near = [](const hd::test::WaitingPlan& each) { return std::abs(each.error()) <= 0.1; };
  const auto& within = plans[0];
  const auto& over = plans[1];
  const auto gain = [&] { return over.took.median() / within.took.median(); };
  const bool result = hd::test::execute_on_threads(
      plans, [&] { return near(within) && near(over) && gain() >= 1.5; }, {.print = false});
  const auto judged = [&](bool good) {
    return result ? verdict(good) : hd::text("skipped: ", hd::test::no_result);
  };
  lines.push_back(
      {"executed: groups within two fast pairs of ranks that links of 20 Mbit/s join, "
       "over groups that span these links",
       "", result ? hd::text(gain(), "x, predicted ", over.predicted / within.predicted, "x") : "",
       "at least 1.5x", judged(result && gain() >= 1.5)});
  lines.push_back({"the same, measured over predicted step: within pairs, over slow links", "",
                   result ? hd::text(1 + within.error(), ", ", 1 + over.error()) : "",
                   "within 10 %", judged(result && near(within) && near(over))});
  lines.push_back({"the same over MPI in an emulated network", "", "", "at least 1.5x, within 10 %",
                   "skipped: scripts/test -R comm.network.groups, with HEDDLE_NETLAB naming the "
                   "script of a network"});
  lines.push_back({"throughput on real clusters",
                   "GPT 3.6B on 32 A100: 197 (InfiniBand), 149 (hybrid), 122 (Ethernet) Tflop/s "
                   "(recalled)",
                   "", "", "not reproducible: it needs the clusters"});
  return lines;
}

}  // namespace report
