// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// GroupLevel: a level of a hierarchical collective. level_of() and levels_of() make levels from
/// groups, and from the memory domains of ranks.

#include <cstdint>
#include <iosfwd>
#include <vector>

#include <heddle/core/linkage.hpp>
#include <heddle/schedule/collective/algorithm.hpp>

namespace heddle::inline v0::schedule {

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

/// Returns the level in which members with the same number in `numbers` form a group. The numbers
/// may have any values.
[[nodiscard]] GroupLevel level_of(const std::vector<std::uint32_t>& numbers, Algorithm algorithm);

namespace impl {

/// Returns the levels for ranks with memory domains (see SharesMemory). Ranks with the same number
/// in `domains` form the groups of the innermost level, which uses the direct algorithm. The level
/// above joins the domains by `outer`. If each rank is a domain of its own, or if there is only one
/// domain, the result has one level.
[[nodiscard]] std::vector<GroupLevel> levels_of(const std::vector<std::uint32_t>& domains,
                                                Algorithm outer = Algorithm::ring);

}  // namespace impl

}  // namespace heddle::inline v0::schedule

#if HEDDLE_DEFINES_SCHEDULE_COLLECTIVE
#include <heddle/schedule/collective/group_level.ipp>
#endif
