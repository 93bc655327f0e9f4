// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// Direct: every block goes straight from its source to its destination, all in one round.

#include <cstdint>

#include <heddle/schedule/collective/team.hpp>

namespace heddle::inline v0::schedule {

/// Every member sends block q to member q, which merges what it gets: (P - 1) C messages each.
/// Block s is merged in the order x[s], x[s+1], ..., around. Time with x = m / (P C b): a + C x;
/// that of an all-reduce, which is this and an all-gather: max(2 (a + x) + (C-1) x, a + 2 C x).
inline void direct_reduce_scatter(Team& team) {
  const std::uint32_t p = team.size();
  team.next_round();
  for (std::uint32_t d = 1; d < p; ++d)
    for (std::uint32_t r = 0; r < p; ++r) team.merge((r + d) % p, r, r, 1);
}

/// Every member r sends block r to all others: (P - 1) C messages each. Time as above.
inline void direct_all_gather(Team& team) {
  const std::uint32_t p = team.size();
  team.next_round();
  for (std::uint32_t d = 1; d < p; ++d)
    for (std::uint32_t r = 0; r < p; ++r) team.copy((r + d) % p, r, (r + d) % p, 1);
}

/// The outputs are members P to 2 P - 1: (P - 1) C messages and C local copies each.
inline void direct_all_to_all(Team& team) {
  const std::uint32_t p = team.size();
  team.next_round();
  for (std::uint32_t d = 0; d < p; ++d)
    for (std::uint32_t r = 0; r < p; ++r) {
      const std::uint32_t to = (r + d) % p;
      team.copy({r, to, 1}, {p + to, r, 1});
    }
}

/// Every input, of one block, goes to the output of the root, which is member P: C messages
/// from everybody but the root, whose own is a local copy.
inline void direct_gather(Team& team) {
  team.next_round();
  for (std::uint32_t r = 0; r < team.size(); ++r) team.copy({r, 0, 1}, {team.size(), r, 1});
}

/// Every block of the root's input, which is member 0, goes to the output of one rank, of which
/// that of rank r is member r + 1.
inline void direct_scatter(Team& team) {
  team.next_round();
  for (std::uint32_t r = 0; r < team.size(); ++r) team.copy({0, r, 1}, {1 + r, 0, 1});
}

}  // namespace heddle::inline v0::schedule
