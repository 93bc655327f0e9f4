// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// play(): a collective over levels of groups. Each level has its own algorithm.

#include <cstdint>
#include <iosfwd>
#include <span>
#include <string>
#include <vector>

#include <heddle/core/linkage.hpp>
#include <heddle/schedule/collective/algorithm.hpp>

namespace heddle::inline v0::schedule {

class Team;

/// A level of a hierarchy. Its members are ranks, or the groups of the level below.
struct GroupLevel {
  int ranks = 1;                          ///< number of members of the largest group
  Algorithm algorithm = Algorithm::ring;  ///< the algorithm among the members of a group
  /// The group of each member, numbered from 0 in the order of their first members. See level_of().
  /// If empty, each group has `ranks` consecutive members.
  std::vector<std::uint32_t> groups = {};

  friend bool operator==(const GroupLevel&, const GroupLevel&) = default;
  /// Prints "4 by direct", "3 by direct in groups 3x0 1" or "2 by direct in groups 0 1 0 1".
  friend std::ostream& operator<<(std::ostream& out, const GroupLevel& level);
};

namespace impl {

/// The members of each group of a level.
using Groups = std::vector<std::vector<std::uint32_t>>;

/// Returns the groups of a level that why_not() accepts.
[[nodiscard]] Groups groups_of(const GroupLevel& level, std::uint32_t members);

}  // namespace impl

/// Returns the reason why `levels` is not a hierarchy of `ranks` ranks for the collective, or an
/// empty string if it is one. Reduce-scatter and all-gather need groups of equal size.
[[nodiscard]] std::string why_not(Collective collective, std::span<const GroupLevel> levels,
                                  std::uint32_t ranks);

/// Returns the number of blocks into which the data of `ranks` ranks must be cut, so that every
/// level can divide it.
[[nodiscard]] std::uint32_t blocks_of(Collective collective, std::span<const GroupLevel> levels,
                                      std::uint32_t ranks);

/// Appends the rounds of `collective` on `team`. The members of the team are the members of
/// levels[0], the groups of levels[0] are the members of levels[1], and so on.
///
/// An all-reduce is a reduce-scatter inside of groups, an all-reduce of each block across groups,
/// and an all-gather inside of groups. If the algorithm of the inner level has no reduce-scatter,
/// it is a reduction to one member, an all-reduce across groups, and a broadcast. With a
/// reduce-scatter, a member of a group of n sends m / n bytes across groups. A reduce-scatter works
/// inside of groups first, then across groups; an all-gather works in the opposite order.
///
/// If groups of an all-reduce divide the work, the k-th members of all groups work together, for
/// each k below the size n of the smallest group. Larger groups first merge their surplus members
/// into the first n, half of the members at a time with all m bytes, and send them the result at
/// the end. In rooted collectives, and without a reduce-scatter, one member represents its group.
/// In the root's group it is the root.
void play(Collective collective, const Team& team, std::span<const GroupLevel> levels);

}  // namespace heddle::inline v0::schedule

#if HEDDLE_DEFINES_SCHEDULE_COLLECTIVE
#include <heddle/schedule/collective/hierarchical.ipp>
#endif
