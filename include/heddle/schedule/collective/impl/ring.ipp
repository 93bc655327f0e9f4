// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// Definitions of algorithms.hpp: ring.

#include <cstdint>

#include <heddle/core/linkage.hpp>
#include <heddle/schedule/collective/impl/algorithms.hpp>
#include <heddle/schedule/collective/impl/team.hpp>

namespace heddle::inline v0::schedule::impl {

/// Appends P - 1 rounds of a ring, in which every member passes on the block that it received. It
/// begins with the block `start` before its own. With `two_ways` the second half of every block
/// goes around in the other direction.
template <bool two_ways, class Pass>
void go_round(Team& team, std::uint32_t start, Pass&& pass) {
  const std::uint32_t p = team.size();
  for (std::uint32_t k = start; k + 1 < p + start; ++k) {
    team.next_round();
    for (std::uint32_t r = 0; r < p; ++r) {
      const std::uint32_t next = (r + 1) % p;
      const std::uint32_t behind = (r + p - k) % p;
      if constexpr (two_ways) {
        pass(r, next, 2 * behind);
        pass(r, (r + p - 1) % p, 2 * ((r + k) % p) + 1);
      } else {
        pass(r, next, behind);
      }
    }
  }
}

template <bool two_ways>
void reduce_round(Team& team) {
  go_round<two_ways>(team, 1, [&](std::uint32_t from, std::uint32_t to, std::uint32_t block) {
    team.merge(from, to, block, 1);
  });
}

template <bool two_ways>
void gather_round(Team& team) {
  go_round<two_ways>(team, 0, [&](std::uint32_t from, std::uint32_t to, std::uint32_t block) {
    team.copy(from, to, block, 1);
  });
}

HEDDLE_INLINE void ring_reduce_scatter(Team& team) { reduce_round<false>(team); }

HEDDLE_INLINE void ring_all_gather(Team& team) { gather_round<false>(team); }

HEDDLE_INLINE void bidirectional_ring_reduce_scatter(Team& team) { reduce_round<true>(team); }

HEDDLE_INLINE void bidirectional_ring_all_gather(Team& team) { gather_round<true>(team); }

HEDDLE_INLINE void ring_broadcast(Team& team) {
  const std::uint32_t p = team.size();
  for (std::uint32_t k = 0; k + 1 < p; ++k) {
    team.next_round();
    team.copy((team.root() + k) % p, (team.root() + k + 1) % p, 0, team.blocks());
  }
}

HEDDLE_INLINE void ring_reduce(Team& team) {
  const std::uint32_t p = team.size();
  for (std::uint32_t k = p - 1; k > 0; --k) {
    team.next_round();
    team.merge((team.root() + k) % p, (team.root() + k - 1) % p, 0, team.blocks());
  }
}

}  // namespace heddle::inline v0::schedule::impl
