// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// Stars: all to one, and one to all. Fewest latencies that a sum can have over slow links
/// (TPI-LLM, arXiv:2410.00531); but the port of the root carries it all.

#include <cstdint>

#include <heddle/schedule/collective/team.hpp>

namespace heddle::inline v0::schedule {

/// All to one: the root merges x[root] + x[root+1] + ..., around. P - 1 edges with C messages of m
/// bytes in all. Time with one chunk: a + m / b, or a + (P-1) m / b through one port of the root.
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
