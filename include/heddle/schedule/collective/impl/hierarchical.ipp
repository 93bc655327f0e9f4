// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// Definitions of hierarchical.hpp.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include <heddle/core/linkage.hpp>
#include <heddle/core/text.hpp>
#include <heddle/schedule/collective/group_level.hpp>
#include <heddle/schedule/collective/impl/hierarchical.hpp>
#include <heddle/schedule/collective/impl/recipe.hpp>
#include <heddle/schedule/collective/impl/team.hpp>

namespace heddle::inline v0::schedule::impl {

HEDDLE_INLINE Groups groups_of(const GroupLevel& level, std::uint32_t members) {
  Groups found;
  for (std::uint32_t m = 0; m < members; ++m) {
    const std::size_t group =
        level.groups.empty() ? m / static_cast<std::uint32_t>(level.ranks) : level.groups[m];
    if (group == found.size()) found.emplace_back();
    found[group].push_back(m);
  }
  return found;
}

/// Returns the number of members of the smallest group.
[[nodiscard]] inline std::uint32_t smallest(const Groups& groups) {
  std::size_t least = groups[0].size();
  for (const auto& group : groups) least = std::min(least, group.size());
  return static_cast<std::uint32_t>(least);
}

/// Returns the reason why a level of `members` members cannot have these groups, to follow "level 0
/// ", or an empty string if it can.
[[nodiscard]] inline std::string why_not(Collective collective, const GroupLevel& level,
                                         std::uint32_t members) {
  if (level.groups.empty())
    return level.ranks > 0 && members % static_cast<std::uint32_t>(level.ranks) == 0
               ? std::string()
               : text("has groups of ", level.ranks, " members, which do not divide its ", members,
                      " members");
  if (level.groups.size() != members)
    return text("names the groups of ", level.groups.size(), " members, but has ", members);
  std::vector<int> sizes;
  for (const std::uint32_t group : level.groups) {
    if (group > sizes.size())
      return text("has a member in group ", group, " before one in group ", sizes.size());
    if (group == sizes.size()) sizes.push_back(0);
    ++sizes[group];
  }
  const auto [least, most] = std::ranges::minmax(sizes);
  if (most != level.ranks) return text("has groups of up to ", most, " members, not ", level.ranks);
  const bool by_rank =
      collective == Collective::reduce_scatter || collective == Collective::all_gather;
  if (least != most && by_rank)
    return text("needs groups of equal size, but has groups of ", least, " to ", most, " members");
  return {};
}

/// Returns whether a group divides the work of an all-reduce, such that each member sends a block
/// across groups. Otherwise one member sends all of the data.
[[nodiscard]] constexpr bool shares_all_reduce(Algorithm algorithm) {
  return find_recipe(Collective::reduce_scatter, algorithm).play != nullptr &&
         find_recipe(Collective::all_gather, algorithm).play != nullptr;
}

/// Returns whether `algorithm` can perform its part of the collective inside of groups.
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

HEDDLE_INLINE std::string why_not(Collective collective, std::span<const GroupLevel> levels,
                                  std::uint32_t ranks) {
  std::uint32_t members = ranks;
  for (std::size_t i = 0; i < levels.size(); ++i) {
    const Algorithm algorithm = levels[i].algorithm;
    const bool outermost = i + 1 == levels.size();
    if (outermost ? find_recipe(collective, algorithm).play == nullptr
                  : !works_inside(collective, algorithm))
      return levels.size() == 1 ? "the algorithm does not perform this collective"
                                : text("level ", i, " is ", algorithm, ", which does not perform ",
                                       outermost ? "it" : "its part of it");
    if (const std::string why = why_not(collective, levels[i], members); !why.empty())
      return text("level ", i, ' ', why);
    members = static_cast<std::uint32_t>(groups_of(levels[i], members).size());
  }
  return members == 1 && !levels.empty()
             ? std::string()
             : text("its ", levels.size(), " levels must end in one group, but leave ", members);
}

HEDDLE_INLINE std::uint32_t blocks_of(Collective collective, std::span<const GroupLevel> levels,
                                      std::uint32_t ranks) {
  if (levels.size() == 1) return find_recipe(collective, levels[0].algorithm).blocks_of(ranks);
  if (!why_not(collective, levels, ranks).empty())
    return ranks;            // any value, because play() rejects these levels
  std::uint32_t halves = 1;  // 2 if an algorithm sends the halves of a block to different members
  std::uint32_t shares = 1;
  std::uint32_t members = ranks;
  for (const GroupLevel& level : levels) {
    const Recipe recipe = find_recipe(collective, level.algorithm);
    if (recipe.per_rank == 2 || recipe.blocks == 2) halves = 2;
    const Groups groups = groups_of(level, members);
    shares *= smallest(groups);
    members = static_cast<std::uint32_t>(groups.size());
  }
  const bool rooted = collective == Collective::broadcast || collective == Collective::reduce;
  return rooted ? halves : shares * halves;
}

/// Returns the number of members that remain after each round: size, ..., left. In a round the last
/// members, at most half of them, send their data to the first ones.
[[nodiscard]] inline std::vector<std::uint32_t> halvings(std::uint32_t size, std::uint32_t left) {
  std::vector<std::uint32_t> sizes{size};
  while (sizes.back() > left) sizes.push_back(std::max(left, (sizes.back() + 1) / 2));
  return sizes;
}

/// Merges the data of the surplus members of a group into its first `left` members.
inline void merge_surplus(Team team, std::uint32_t left) {
  const std::vector<std::uint32_t> sizes = halvings(team.size(), left);
  for (std::size_t i = 1; i < sizes.size(); ++i) {
    team.next_round();
    for (std::uint32_t m = sizes[i]; m < sizes[i - 1]; ++m)
      team.merge(m, m - sizes[i], 0, team.blocks());
  }
}

/// Sends the result from the first `left` members to the surplus members, along the same edges.
inline void serve_surplus(Team team, std::uint32_t left) {
  const std::vector<std::uint32_t> sizes = halvings(team.size(), left);
  for (std::size_t i = sizes.size() - 1; i > 0; --i) {
    team.next_round();
    for (std::uint32_t m = sizes[i]; m < sizes[i - 1]; ++m)
      team.copy(m - sizes[i], m, 0, team.blocks());
  }
}

HEDDLE_INLINE void play(Collective collective, const Team& team,
                        std::span<const GroupLevel> levels) {
  const std::uint32_t p = team.size();
  if (levels.size() == 1) {
    const Recipe recipe = find_recipe(collective, levels[0].algorithm);
    Team whole = team.cut_in(recipe.blocks_of(p));
    return recipe.play(whole);
  }
  const Groups groups = groups_of(levels[0], p);
  const std::uint32_t n = smallest(groups);
  std::uint32_t home = 0, place = 0;  // the root's group, and the root's position in it
  for (std::uint32_t g = 0; g < groups.size(); ++g)
    if (const auto found = std::ranges::find(groups[g], team.root()); found != groups[g].end()) {
      home = g;
      place = static_cast<std::uint32_t>(found - groups[g].begin());
    }
  Groups places;  // the members at one position of all groups; cyclic in smaller groups
  for (std::uint32_t k = 0; k < static_cast<std::uint32_t>(levels[0].ranks); ++k) {
    places.emplace_back();
    for (const auto& group : groups) places[k].push_back(group[k % group.size()]);
  }
  Groups sharing = groups;  // the first n members of each group
  for (auto& group : sharing) group.resize(n);
  const auto inside = [&](Collective part, const Team& blocks, const Groups& among) {
    for (const auto& group : among)
      play(part, blocks.some(group, place % static_cast<std::uint32_t>(group.size())),
           levels.first(1));
  };
  const auto across = [&](std::uint32_t at, const Team& blocks) {
    play(collective, blocks.some(places[at], home), levels.subspan(1));
  };
  const auto across_each = [&](const Team& blocks) {
    for (std::uint32_t at = 0; at < n; ++at) across(at, blocks.only(at));
  };
  switch (collective) {
    case Collective::all_reduce:
      if (shares_all_reduce(levels[0].algorithm)) {
        const Team shared = team.cut_in(n);
        for (const auto& group : groups) merge_surplus(team.some(group, 0), n);
        inside(Collective::reduce_scatter, shared, sharing);
        across_each(shared);
        inside(Collective::all_gather, shared, sharing);
        for (const auto& group : groups) serve_surplus(team.some(group, 0), n);
      } else {
        inside(Collective::reduce, team, groups);
        across(place, team);
        inside(Collective::broadcast, team, groups);
      }
      return;
    case Collective::reduce_scatter:
      inside(collective, team.cut_in(p).joined(places), groups);
      return across_each(team.cut_in(p).joined(places));
    case Collective::all_gather:
      across_each(team.cut_in(p).joined(places));
      return inside(collective, team.cut_in(p).joined(places), groups);
    case Collective::broadcast: across(place, team); return inside(collective, team, groups);
    case Collective::reduce: inside(collective, team, groups); return across(place, team);
    default: return;  // why_not() rejects it
  }
}

}  // namespace heddle::inline v0::schedule::impl
