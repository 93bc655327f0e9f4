// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// play(): a collective over levels of groups, each level by an algorithm of its own. One level is
/// that algorithm; several are composed of it.

#include <cstdint>
#include <iosfwd>
#include <span>
#include <string>
#include <vector>

#include <heddle/core/linkage.hpp>
#include <heddle/schedule/collective/algorithm.hpp>
#include <heddle/schedule/collective/team.hpp>

namespace heddle::inline v0::schedule {

/// One level of a hierarchy. Its members are ranks, or the groups of the level below.
struct GroupLevel {
  int ranks = 1;                          ///< members of a group, of the largest one
  Algorithm algorithm = Algorithm::ring;  ///< among them
  /// The group of each member, numbered from 0 in the order of their first members; see level_of().
  /// Empty: groups of `ranks` members that follow one another.
  std::vector<std::uint32_t> groups = {};

  friend bool operator==(const GroupLevel&, const GroupLevel&) = default;
  /// "4 by direct"; "3 by direct in groups 3x0 1", "2 by direct in groups 0 1 0 1"
  friend std::ostream& operator<<(std::ostream& out, const GroupLevel& level);
};

namespace impl {

/// The members of each group of a level.
using Groups = std::vector<std::vector<std::uint32_t>>;

/// Those of a level that why_not() has nothing against.
[[nodiscard]] Groups groups_of(const GroupLevel& level, std::uint32_t members);

}  // namespace impl

/// Why there is no such hierarchy of so many ranks; empty where there is one. A reduce-scatter and
/// an all-gather have groups of one size only.
[[nodiscard]] std::string why_not(Collective collective, std::span<const GroupLevel> levels,
                                  std::uint32_t ranks);

/// In how many blocks the data of `ranks` ranks is cut, so that every level can share it.
[[nodiscard]] std::uint32_t blocks_of(Collective collective, std::span<const GroupLevel> levels,
                                      std::uint32_t ranks);

/// Appends the rounds of `collective` on `team`, whose members are those of levels[0], their groups
/// the members of levels[1], and so on.
///
/// An all-reduce is a reduce-scatter inside of groups, an all-reduce of each block across them, and
/// an all-gather inside; where an algorithm has no reduce-scatter, a reduction to one member, whose
/// all-reduce across the groups, and a broadcast. A member of a group of n that shares sends across
/// groups m / n of the bytes. A reduce-scatter goes across after inside, an all-gather before.
///
/// Across the groups of an all-reduce that share go the k-th members of each, as many as the
/// smallest one has: those that a larger one has more are merged into them before, all m bytes of
/// half of the members at a time, and get the result from them. One member speaks for its group
/// from and to a root, and where there is no reduce-scatter: in the root's group the root.
void play(Collective collective, const Team& team, std::span<const GroupLevel> levels);

}  // namespace heddle::inline v0::schedule

#if HEDDLE_HEADER_ONLY
#include <heddle/schedule/collective/hierarchical.ipp>
#endif
