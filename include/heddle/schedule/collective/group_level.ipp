// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// Definitions of group_level.hpp.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <ostream>
#include <utility>
#include <vector>

#include <heddle/core/linkage.hpp>
#include <heddle/schedule/collective/group_level.hpp>
#include <heddle/schedule/collective/impl/hierarchical.hpp>

namespace heddle::inline v0::schedule {

HEDDLE_INLINE std::ostream& operator<<(std::ostream& out, const GroupLevel& level) {
  out << level.ranks << " by " << level.algorithm;
  if (!level.groups.empty()) out << " in groups";
  for (auto at = level.groups.begin(); at != level.groups.end();) {
    const auto end = std::find_if(at, level.groups.end(), [&](auto group) { return group != *at; });
    out << ' ';
    if (end - at > 1) out << end - at << 'x';
    out << *at;
    at = end;
  }
  return out;
}

HEDDLE_INLINE GroupLevel level_of(const std::vector<std::uint32_t>& numbers, Algorithm algorithm) {
  std::vector<std::uint32_t> seen, groups;
  std::vector<int> sizes;
  for (const std::uint32_t number : numbers) {
    const auto found = std::ranges::find(seen, number);
    groups.push_back(static_cast<std::uint32_t>(found - seen.begin()));
    if (found == seen.end()) {
      seen.push_back(number);
      sizes.push_back(0);
    }
    ++sizes[groups.back()];
  }
  GroupLevel level{sizes.empty() ? 0 : std::ranges::max(sizes), algorithm};
  const auto size = static_cast<std::size_t>(level.ranks);
  bool plain = sizes.size() * size == groups.size();
  for (std::size_t m = 0; plain && m < groups.size(); ++m) plain = groups[m] == m / size;
  if (!plain) level.groups = std::move(groups);
  return level;
}

HEDDLE_INLINE std::vector<GroupLevel> impl::levels_of(const std::vector<std::uint32_t>& domains,
                                                      Algorithm outer) {
  const auto ranks = static_cast<int>(domains.size());
  GroupLevel inside = level_of(domains, Algorithm::direct);
  if (inside.ranks == ranks && ranks > 0) return {std::move(inside)};
  if (inside.ranks <= 1) return {{ranks, outer}};
  const auto hosts = impl::groups_of(inside, static_cast<std::uint32_t>(ranks)).size();
  return {std::move(inside), {static_cast<int>(hosts), outer}};
}

}  // namespace heddle::inline v0::schedule
