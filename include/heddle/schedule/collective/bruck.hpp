// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// Bruck's algorithms: ceil(log P) rounds for any number of members, at distance 1, 2, 4, ...
/// around, and no byte more than a ring sends.

#include <algorithm>
#include <bit>
#include <cstdint>

#include <heddle/schedule/collective/team.hpp>

namespace heddle::inline v0::schedule {

/// All-gather: in the round at distance d everybody has d blocks, its own and those after it, and
/// sends them, or those of them that are still missing, to the member d before it: k = ceil(log2 P)
/// rounds, P - 1 blocks in all, a round's in two messages where they lie around the end. Time with
/// one chunk: at most k a + (P-1) m / (P b), and that where P = 2^k. Bruck et al., IEEE TPDS 8
/// (1997), without its rotations: blocks lie where they belong.
inline void bruck_all_gather(Team& team) {
  const std::uint32_t p = team.size();
  for (std::uint32_t distance = 1; distance < p; distance *= 2) {
    team.next_round();
    for (std::uint32_t r = 0; r < p; ++r)
      team.copy(r, (r + p - distance) % p, r, std::min(distance, p - distance));
  }
}

/// Reduce-scatter: the all-gather backwards. Block s is merged along the same tree.
inline void bruck_reduce_scatter(Team& team) {
  const std::uint32_t p = team.size();
  for (std::uint32_t distance = std::bit_ceil(p) / 2; distance > 0; distance /= 2) {
    team.next_round();
    for (std::uint32_t r = 0; r < p; ++r) {
      const std::uint32_t to = (r + distance) % p;
      team.merge(r, to, to, std::min(distance, p - distance));
    }
  }
}

/// Barrier by dissemination (Hensgen, Finkel and Manber, 1988): k = ceil(log2 P) messages of no
/// bytes from everybody, and a time of k a. Block i + 1 of a member is what it is told in round i.
inline void bruck_barrier(Team& team) {
  const std::uint32_t p = team.size();
  std::uint32_t told = 1;
  for (std::uint32_t distance = 1; distance < p; distance *= 2, ++told) {
    team.next_round();
    for (std::uint32_t r = 0; r < p; ++r) team.copy({r, 0, told}, {(r + distance) % p, told, 1});
  }
}

}  // namespace heddle::inline v0::schedule
