// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// level_of() and levels_of(): make the levels of a hierarchical collective from groups, and from
/// the memory domains of ranks.

#include <cstdint>
#include <vector>

#include <heddle/core/linkage.hpp>
#include <heddle/schedule/collective/algorithm.hpp>
#include <heddle/schedule/collective/hierarchical.hpp>

namespace heddle::inline v0::schedule {

/// Returns the level in which members with the same number in `numbers` form a group. The numbers
/// may have any values.
[[nodiscard]] GroupLevel level_of(const std::vector<std::uint32_t>& numbers, Algorithm algorithm);

/// Returns the levels for ranks with memory domains (see SharesMemory). Ranks with the same number
/// in `domains` form the groups of the innermost level, which uses the direct algorithm. The level
/// above joins the domains by `outer`. If each rank is a domain of its own, or if there is only one
/// domain, the result has one level.
[[nodiscard]] std::vector<GroupLevel> levels_of(const std::vector<std::uint32_t>& domains,
                                                Algorithm outer = Algorithm::ring);

}  // namespace heddle::inline v0::schedule

#if HEDDLE_DEFINES_SCHEDULE_COLLECTIVE
#include <heddle/schedule/collective/domain_levels.ipp>
#endif
