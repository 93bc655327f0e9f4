// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// Stars: all to one, and one to all. Fewest latencies that a sum can have over slow links
/// (TPI-LLM, arXiv:2410.00531); but the port of the root carries it all.

#include <cstdint>

#include <heddle/schedule/collective/team.hpp>

namespace heddle::inline v0::schedule {

/// All to one: C messages of m bytes in all from everybody; the root merges x[root] + x[root+1] +
/// ..., around. Time with x = m / (C b): a + C x where links do not share a port, a + (P-1) C x
/// where the root has one. An all-reduce, which is this and a broadcast, takes 2 a + (C+1) x, or
/// with one port and one chunk 2 (a + (P-1) m / b).
inline void star_reduce(Team& team) {
  const std::uint32_t p = team.size();
  team.next_round();
  for (std::uint32_t d = 1; d < p; ++d)
    team.merge((team.root() + d) % p, team.root(), 0, team.blocks());
}

/// One to all; as the reduction, backwards.
inline void star_broadcast(Team& team) {
  const std::uint32_t p = team.size();
  team.next_round();
  for (std::uint32_t d = 1; d < p; ++d)
    team.copy(team.root(), (team.root() + d) % p, 0, team.blocks());
}

}  // namespace heddle::inline v0::schedule
