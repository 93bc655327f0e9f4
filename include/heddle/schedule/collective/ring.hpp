// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// Rings: every member sends to the next one only.

#include <cstdint>

#include <heddle/schedule/collective/team.hpp>

namespace heddle::inline v0::schedule {

/// Reduce-scatter around a ring; block r ends at member r. P - 1 rounds, in each of which every
/// member sends one block. Block s is merged in the order x[s+1], x[s+2], ..., x[s], around.
inline void ring_reduce_scatter(Team& team) {
  const std::uint32_t p = team.size();
  for (std::uint32_t k = 0; k + 1 < p; ++k) {
    team.next_round();
    for (std::uint32_t r = 0; r < p; ++r) team.merge(r, (r + 1) % p, (r + 2 * p - 1 - k) % p, 1);
  }
}

/// All-gather around a ring, of block r from member r. P - 1 rounds, in each of which every member
/// sends one block.
inline void ring_all_gather(Team& team) {
  const std::uint32_t p = team.size();
  for (std::uint32_t k = 0; k + 1 < p; ++k) {
    team.next_round();
    for (std::uint32_t r = 0; r < p; ++r) team.copy(r, (r + 1) % p, (r + p - k) % p, 1);
  }
}

}  // namespace heddle::inline v0::schedule
