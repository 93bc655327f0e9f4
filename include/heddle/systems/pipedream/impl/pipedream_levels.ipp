// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// Definitions of pipedream_levels.hpp.

#include <algorithm>
#include <array>
#include <cstddef>
#include <limits>
#include <vector>

#include <heddle/core/index.hpp>
#include <heddle/core/linkage.hpp>
#include <heddle/machine/machine.hpp>
#include <heddle/plan/plan_problem.hpp>
#include <heddle/systems/pipedream/impl/pipedream_levels.hpp>

namespace heddle::inline v0::systems::impl {

HEDDLE_INLINE PipeDreamLevels::PipeDreamLevels(const Machine& machine) {
  const auto ranks = static_cast<std::size_t>(machine.ranks());
  std::vector<std::size_t> groups(ranks);
  for (std::size_t r = 0; r < ranks; ++r) groups[r] = r;
  add(groups);
  for (std::size_t l = 0; l < machine.levels().size(); ++l) {
    for (std::size_t r = 0; r < ranks; ++r) groups[r] = machine.group(l, Rank{r});
    if (groups != group_of.back()) add(groups);
  }
  constexpr double many = 0x1p30;  // bytes
  // If the levels give all links, neighbours have every link that there is.
  const bool by_level = machine.links().empty() && machine.shared().empty();
  for (std::size_t a = 0; a < ranks; ++a)
    for (std::size_t b = a + 1; b < (by_level ? std::min(a + 2, ranks) : ranks); ++b) {
      const std::array pair{Rank{a}, Rank{b}};
      const Seconds time = plan::ring_all_reduce_time(machine, pair, many) -
                           plan::ring_all_reduce_time(machine, pair, 0);
      std::size_t level = 1;
      while (group_of[level][a] != group_of[level][b]) ++level;
      bandwidth[level] = std::min(bandwidth[level], many / time);
    }
}

HEDDLE_INLINE void PipeDreamLevels::add(const std::vector<std::size_t>& groups) {
  std::vector<std::size_t> ranks(groups.back() + 1);
  inside.emplace_back(groups.back() + 1);
  for (std::size_t r = 0; r < groups.size(); ++r) {
    ++ranks[groups[r]];
    std::vector<std::size_t>& below = inside.back()[groups[r]];
    const std::size_t group = group_of.empty() ? r : group_of.back()[r];
    if (below.empty() || below.back() != group) below.push_back(group);
  }
  group_of.push_back(groups);
  sizes.push_back(*std::ranges::max_element(ranks));
  bandwidth.push_back(std::numeric_limits<double>::infinity());
}

}  // namespace heddle::inline v0::systems::impl
