// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// level_of(), levels_of(): the levels of a hierarchical collective, as groups and the ranks'
/// domains of memory have them.

#include <cstdint>
#include <vector>

#include <heddle/core/linkage.hpp>
#include <heddle/schedule/collective/algorithm.hpp>
#include <heddle/schedule/collective/hierarchical.hpp>

namespace heddle::inline v0::schedule {

/// The level whose members are a group where they have one number in `numbers`, whatever the
/// numbers are.
[[nodiscard]] GroupLevel level_of(const std::vector<std::uint32_t>& numbers, Algorithm algorithm);

/// Ranks with one number in `domains` (see SharesMemory) as the innermost level, straight from each
/// to each, and the domains by `outer` above them. Where each rank is a domain, and where there is
/// one only, all ranks are one level.
[[nodiscard]] std::vector<GroupLevel> levels_of(const std::vector<std::uint32_t>& domains,
                                                Algorithm outer = Algorithm::ring);

}  // namespace heddle::inline v0::schedule

#if HEDDLE_HEADER_ONLY
#include <heddle/schedule/collective/domain_levels.ipp>
#endif
