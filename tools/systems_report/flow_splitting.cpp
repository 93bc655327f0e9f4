// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors

/// @file
/// Flow splitting (Ethereal) against spraying and hashing, and C4P's planner of whole flows.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <numeric>
#include <string>
#include <vector>

#include <heddle/core/text.hpp>
#include <heddle/machine.hpp>
#include <heddle/plan.hpp>
#include <heddle/schedule.hpp>
#include <heddle/simulate.hpp>

#include "comparison.hpp"

namespace hd = heddle;

namespace report {

namespace {

using hd::plan::SplitRule;

constexpr int leaves = 4;
constexpr int spines = 4;
constexpr hd::Seconds latency = 5e-7;

/// Cases of r flows over s links, both up to 64, in which a rule cuts as many pieces as its formula
/// says, every flow is covered once and every link carries r / s of a flow.
std::size_t exact_cases(SplitRule rule) {
  std::size_t exact = 0;
  for (int r = 1; r <= 64; ++r)
    for (int s = 1; s <= 64; ++s) {
      const auto links = static_cast<std::uint32_t>(s);
      const int rest = r % s;
      const int expected = rule == SplitRule::equal_pieces   ? r * s / std::gcd(r, s)
                           : rule == SplitRule::fill_in_turn ? r + s - std::gcd(r, s)
                           : rest == 0                       ? r
                                       : r - rest + rest * s / std::gcd(rest, s);
      const auto pieces = hd::plan::split_flows(r, s, rule);
      std::vector<std::uint32_t> covered(static_cast<std::size_t>(r), 0);
      std::vector<std::uint32_t> load(links, 0);  // in units of 1 / s of a flow
      bool good = pieces.size() == static_cast<std::size_t>(expected);
      for (const hd::plan::FlowPiece& piece : pieces) {
        good = good && covered[piece.flow] == piece.first;
        covered[piece.flow] += piece.count;
        load[piece.link] += piece.count;
      }
      good = good && std::ranges::count(covered, links) == r;
      good = good && std::ranges::count(load, static_cast<std::uint32_t>(r)) == s;
      exact += good ? 1 : 0;
    }
  return exact;
}

/// An all-to-all of `hosts` ranks on each leaf over links of 400 Gbit/s between leaves and spines.
struct AllToAll {
  hd::Schedule schedule;
  hd::Machine machine;
  int hosts;

  explicit AllToAll(int hosts_on_a_leaf)
      : schedule(hd::schedule::collective(
            hd::schedule::Collective::all_to_all, hd::schedule::Algorithm::direct,
            {.ranks = leaves * hosts_on_a_leaf,
             .bytes = hd::Bytes{1 << 22} * static_cast<hd::Bytes>(leaves * hosts_on_a_leaf)})),
        machine(hd::Machine::hierarchical(
            std::vector<hd::Device>(static_cast<std::size_t>(leaves * hosts_on_a_leaf)),
            {{.name = "leaf",
              .ranks = hosts_on_a_leaf,
              .ports = {.out = 50e9, .in = 50e9, .count = spines}},
             {.name = "fabric", .ranks = leaves * hosts_on_a_leaf, .link = {.latency = latency}}})),
        hosts(hosts_on_a_leaf) {}

  [[nodiscard]] hd::Seconds run(const hd::Schedule& over) const {
    return hd::simulate(over, {}, machine).makespan();
  }
  [[nodiscard]] hd::Seconds split(SplitRule rule) const {
    return run(hd::plan::over_uplinks(schedule, {.ranks = hosts, .links = spines, .rule = rule}));
  }
  /// Every message over all spines at once.
  [[nodiscard]] hd::Seconds sprayed() const {
    std::vector<hd::schedule::MovePiece> all;
    for (std::uint32_t s = 0; s < spines; ++s) all.push_back({hd::Lane{s}, s, 1});
    return run(hd::schedule::split_moves(schedule, spines, [&](hd::ActionId) { return all; }));
  }
  /// Every message whole, over the spine that its hash says; the mean of 200 seeds.
  [[nodiscard]] hd::Seconds hashed() const {
    constexpr int seeds = 200;
    hd::Seconds sum = 0;
    for (std::uint64_t seed = 0; seed < seeds; ++seed) {
      const auto path = hd::plan::hash_paths(schedule.size(), spines, seed);
      sum += run(hd::schedule::split_moves(schedule, 1, [&](hd::ActionId id) {
        return std::vector{hd::schedule::MovePiece{.lane = hd::Lane{path[+id]}}};
      }));
    }
    return sum / seeds;
  }
};

/// The fullest of the links over the ideal, when `flows` of one leaf are hashed over 16 spines; the
/// mean of 20,000 seeds.
double hashed_load(std::size_t flows) {
  constexpr int seeds = 20000;
  double sum = 0;
  for (std::uint64_t seed = 0; seed < seeds; ++seed) {
    std::vector<int> load(16, 0);
    for (const std::uint32_t spine : hd::plan::hash_paths(flows, 16, seed)) ++load[spine];
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
      hd::plan::PathPlan plan(std::vector<hd::plan::Flow>(flows, {0, 1}), static_cast<int>(s));
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
  constexpr std::size_t cases = 64 * 64;
  const std::size_t exact[] = {exact_cases(SplitRule::equal_pieces),
                               exact_cases(SplitRule::whole_flows_first),
                               exact_cases(SplitRule::fill_in_turn)};
  lines.push_back(
      {"largest load, pieces and coverage for r flows over s links, r, s <= 64, by "
       "equal pieces, whole flows first, filling in turn",
       "r f/s; r s/g, r - q + q s/gcd(q, s) with q = r mod s, r + s - g pieces",
       hd::text(exact[0], ", ", exact[1], ", ", exact[2], " of ", cases, " exact"), "all",
       verdict(std::ranges::count(exact, cases) == 3)});
  for (const int hosts : {1, 2}) {
    const AllToAll each(hosts);
    const hd::Seconds sprayed = each.sprayed();
    const hd::Seconds ours = each.split(SplitRule::fill_in_turn);
    const hd::Seconds worst = std::max(
        {ours, each.split(SplitRule::equal_pieces), each.split(SplitRule::whole_flows_first)});
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
