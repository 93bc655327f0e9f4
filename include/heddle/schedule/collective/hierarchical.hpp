// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// play(): a collective over levels of groups, each level by an algorithm of its own. One level is
/// that algorithm; several are composed of it.

#include <cstdint>
#include <ostream>
#include <span>
#include <string>
#include <vector>

#include <heddle/core/text.hpp>
#include <heddle/schedule/collective/algorithm.hpp>
#include <heddle/schedule/collective/recipe.hpp>
#include <heddle/schedule/collective/team.hpp>

namespace heddle::inline v0::schedule {

/// One level of a hierarchy.
struct GroupLevel {
  int ranks = 1;                          ///< in a group: of ranks, or of groups one level below
  Algorithm algorithm = Algorithm::ring;  ///< among them

  friend bool operator==(const GroupLevel&, const GroupLevel&) = default;
  /// "4 by direct"
  friend std::ostream& operator<<(std::ostream& out, const GroupLevel& level) {
    return out << level.ranks << " by " << level.algorithm;
  }
};

namespace impl {

/// Whether a group may share the work of an all-reduce: each of its members takes a block across
/// the groups. Otherwise one of them takes it all.
[[nodiscard]] constexpr bool shares_all_reduce(Algorithm algorithm) {
  return find_recipe(Collective::reduce_scatter, algorithm).play != nullptr &&
         find_recipe(Collective::all_gather, algorithm).play != nullptr;
}

/// Whether `algorithm` does its part of the collective inside of groups.
[[nodiscard]] constexpr bool works_inside(Collective collective, Algorithm algorithm) {
  const auto does = [algorithm](Collective part) {
    return find_recipe(part, algorithm).play != nullptr;
  };
  switch (collective) {
    case Collective::all_reduce:
      return shares_all_reduce(algorithm) ||
             (does(Collective::reduce) && does(Collective::broadcast));
    case Collective::reduce_scatter:
    case Collective::all_gather:
    case Collective::broadcast:
    case Collective::reduce: return does(collective);
    default: return false;
  }
}

}  // namespace impl

/// Why there is no such hierarchy of so many ranks; empty where there is one.
[[nodiscard]] inline std::string why_not(Collective collective, std::span<const GroupLevel> levels,
                                         std::uint32_t ranks) {
  std::uint64_t product = 1;
  for (std::size_t i = 0; i < levels.size(); ++i) {
    const Algorithm algorithm = levels[i].algorithm;
    const bool outermost = i + 1 == levels.size();
    if (outermost ? find_recipe(collective, algorithm).play == nullptr
                  : !impl::works_inside(collective, algorithm))
      return levels.size() == 1 ? "the algorithm does not perform it"
                                : text("level ", i, " is ", algorithm, ", which does not perform ",
                                       outermost ? "it" : "its part of it");
    product *= levels[i].ranks > 0 ? static_cast<std::uint64_t>(levels[i].ranks) : 0;
  }
  if (levels.empty() || product != ranks)
    return text("its ", levels.size(), " levels have ", levels.empty() ? 0 : product, " ranks");
  return {};
}

/// In how many blocks the data of `ranks` ranks is cut, so that every level can share it.
[[nodiscard]] inline std::uint32_t blocks_of(Collective collective,
                                             std::span<const GroupLevel> levels,
                                             std::uint32_t ranks) {
  if (levels.size() == 1) return find_recipe(collective, levels[0].algorithm).blocks_of(ranks);
  std::uint32_t halves = 1;  // for those who send half of a block here and half there
  for (const GroupLevel& level : levels) {
    const Recipe recipe = find_recipe(collective, level.algorithm);
    if (recipe.per_rank == 2 || recipe.blocks == 2) halves = 2;
  }
  const bool rooted = collective == Collective::broadcast || collective == Collective::reduce;
  return rooted ? halves : ranks * halves;
}

/// Appends the rounds of `collective` on `team`, whose members next to each other are the groups of
/// levels[0], those groups the groups of levels[1], and so on.
///
/// An all-reduce is a reduce-scatter inside of groups, an all-reduce of each block across them, and
/// an all-gather inside; where an algorithm has no reduce-scatter, a reduction to one member, whose
/// all-reduce across the groups, and a broadcast. A member of a group of n that shares sends across
/// groups m / n of the bytes. A reduce-scatter goes across after inside, an all-gather before.
inline void play(Collective collective, const Team& team, std::span<const GroupLevel> levels) {
  const std::uint32_t p = team.size();
  if (levels.size() == 1) {
    const Recipe recipe = find_recipe(collective, levels[0].algorithm);
    Team whole = team.cut_in(recipe.blocks_of(p));
    return recipe.play(whole);
  }
  const auto n = static_cast<std::uint32_t>(levels[0].ranks);
  const std::uint32_t place = team.root() % n;  // of those that speak for their groups
  const auto inside = [&](Collective part, const Team& blocks) {
    for (std::uint32_t first = 0; first < p; first += n)
      play(part, blocks.some(first, 1, n, place), levels.first(1));
  };
  const auto across = [&](std::uint32_t at, const Team& blocks) {
    play(collective, blocks.some(at, n, p / n, team.root() / n), levels.subspan(1));
  };
  const auto across_each = [&](const Team& blocks) {
    for (std::uint32_t at = 0; at < n; ++at) across(at, blocks.only(at));
  };
  switch (collective) {
    case Collective::all_reduce:
      if (impl::shares_all_reduce(levels[0].algorithm)) {
        const Team shared = team.cut_in(n);
        inside(Collective::reduce_scatter, shared);
        across_each(shared);
        inside(Collective::all_gather, shared);
      } else {
        inside(Collective::reduce, team);
        across(place, team);
        inside(Collective::broadcast, team);
      }
      return;
    case Collective::reduce_scatter:
      inside(collective, team.cut_in(p).dealt_to(n));
      return across_each(team.cut_in(p).dealt_to(n));
    case Collective::all_gather:
      across_each(team.cut_in(p).dealt_to(n));
      return inside(collective, team.cut_in(p).dealt_to(n));
    case Collective::broadcast: across(place, team); return inside(collective, team);
    case Collective::reduce: inside(collective, team); return across(place, team);
    default: return;  // why_not() says so
  }
}

}  // namespace heddle::inline v0::schedule
