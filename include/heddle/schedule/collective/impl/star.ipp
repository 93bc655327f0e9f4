// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// Definitions of algorithms.hpp: star.

#include <cstdint>

#include <heddle/core/linkage.hpp>
#include <heddle/schedule/collective/impl/algorithms.hpp>
#include <heddle/schedule/collective/impl/team.hpp>

namespace heddle::inline v0::schedule::impl {

HEDDLE_INLINE void star_reduce(Team& team) {
  const std::uint32_t p = team.size();
  team.next_round();
  for (std::uint32_t d = 1; d < p; ++d)
    team.merge((team.root() + d) % p, team.root(), 0, team.blocks());
}

HEDDLE_INLINE void star_broadcast(Team& team) {
  const std::uint32_t p = team.size();
  team.next_round();
  for (std::uint32_t d = 1; d < p; ++d)
    team.copy(team.root(), (team.root() + d) % p, 0, team.blocks());
}

}  // namespace heddle::inline v0::schedule::impl
