// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// What the benchmark of flow splitting and the report of systems count and simulate: cases that
/// are exact, and an all-to-all over uplinks that is split, sprayed and hashed.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <numeric>
#include <vector>

#include <heddle/machine.hpp>
#include <heddle/plan.hpp>
#include <heddle/schedule.hpp>
#include <heddle/simulate.hpp>
#include <heddle/systems/c4/path_plan.hpp>
#include <heddle/systems/flow_splitting/flow_splitting.hpp>

namespace uplinks {

namespace hd = heddle;
using hd::systems::SplitRule;

inline constexpr SplitRule rules[] = {hd::systems::SplitRule::equal_pieces,
                                      hd::systems::SplitRule::whole_flows_first,
                                      hd::systems::SplitRule::fill_in_turn};
/// All pairs of r flows and s links, both up to 64.
inline constexpr std::size_t cases = 64 * 64;
inline constexpr int leaves = 4;
inline constexpr int spines = 4;
inline constexpr hd::Seconds latency = 5e-7;

/// Of these the ones in which a rule cuts as many pieces as its formula says, every flow is covered
/// once and every link carries r / s of a flow.
inline std::size_t exact_cases(SplitRule rule) {
  std::size_t exact = 0;
  for (int r = 1; r <= 64; ++r)
    for (int s = 1; s <= 64; ++s) {
      const auto links = static_cast<std::uint32_t>(s);
      const int rest = r % s;
      const int expected = rule == hd::systems::SplitRule::equal_pieces   ? r * s / std::gcd(r, s)
                           : rule == hd::systems::SplitRule::fill_in_turn ? r + s - std::gcd(r, s)
                           : rest == 0                                    ? r
                                       : r - rest + rest * s / std::gcd(rest, s);
      const auto pieces = hd::systems::split_flows(r, s, rule);
      std::vector<std::uint32_t> covered(static_cast<std::size_t>(r), 0);
      std::vector<std::uint32_t> load(links, 0);  // in units of 1 / s of a flow
      bool good = pieces.size() == static_cast<std::size_t>(expected);
      for (const hd::systems::FlowPiece& piece : pieces) {
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
  [[nodiscard]] hd::Schedule split(SplitRule rule) const {
    return hd::systems::over_uplinks(schedule, {.ranks = hosts, .links = spines, .rule = rule});
  }
  /// Every message over all spines at once.
  [[nodiscard]] hd::Schedule sprayed() const {
    std::vector<hd::schedule::MovePiece> all;
    for (std::uint32_t s = 0; s < spines; ++s) all.push_back({hd::Lane{s}, s, 1});
    return hd::schedule::split_moves(schedule, spines, [&](hd::ActionId) { return all; });
  }
  /// The time of every message whole over the spine that its hash says; the mean of 200 seeds.
  [[nodiscard]] hd::Seconds hashed() const {
    constexpr int seeds = 200;
    hd::Seconds sum = 0;
    for (std::uint64_t seed = 0; seed < seeds; ++seed) {
      const auto path = hd::systems::hash_paths(schedule.size(), spines, seed);
      sum += run(hd::schedule::split_moves(schedule, 1, [&](hd::ActionId id) {
        return std::vector{hd::schedule::MovePiece{.lane = hd::Lane{path[+id]}}};
      }));
    }
    return sum / seeds;
  }
};

}  // namespace uplinks
