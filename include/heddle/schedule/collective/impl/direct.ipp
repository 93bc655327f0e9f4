// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// Definitions of algorithms.hpp: direct.

#include <cstdint>

#include <heddle/core/linkage.hpp>
#include <heddle/schedule/collective/impl/algorithms.hpp>
#include <heddle/schedule/collective/impl/team.hpp>

namespace heddle::inline v0::schedule::impl {

HEDDLE_INLINE void direct_reduce_scatter(Team& team) {
  const std::uint32_t p = team.size();
  team.next_round();
  for (std::uint32_t d = 1; d < p; ++d)
    for (std::uint32_t r = 0; r < p; ++r) team.merge((r + d) % p, r, r, 1);
}

HEDDLE_INLINE void direct_all_gather(Team& team) {
  const std::uint32_t p = team.size();
  team.next_round();
  for (std::uint32_t d = 1; d < p; ++d)
    for (std::uint32_t r = 0; r < p; ++r) team.copy((r + d) % p, r, (r + d) % p, 1);
}

HEDDLE_INLINE void direct_all_to_all(Team& team) {
  const std::uint32_t p = team.size();
  team.next_round();
  for (std::uint32_t d = 0; d < p; ++d)
    for (std::uint32_t r = 0; r < p; ++r) {
      const std::uint32_t to = (r + d) % p;
      team.copy({r, to, 1}, {p + to, r, 1});
    }
}

HEDDLE_INLINE void direct_gather(Team& team) {
  team.next_round();
  for (std::uint32_t r = 0; r < team.size(); ++r) team.copy({r, 0, 1}, {team.size(), r, 1});
}

HEDDLE_INLINE void direct_scatter(Team& team) {
  team.next_round();
  for (std::uint32_t r = 0; r < team.size(); ++r) team.copy({0, r, 1}, {1 + r, 0, 1});
}

}  // namespace heddle::inline v0::schedule::impl
