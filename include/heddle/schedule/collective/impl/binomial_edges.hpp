// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// for_binomial_edges(): the edges of a binomial tree over the members of a team.

#include <algorithm>
#include <bit>
#include <cstdint>

#include <heddle/schedule/collective/impl/team.hpp>

namespace heddle::inline v0::schedule::impl {

/// Calls `pass(parent, child, count)` for every edge of a binomial tree over the P members of
/// `team`, whose root is the team's root. The subtree of `child` has `count` members: it and the
/// `count` - 1 members after it, cyclically. Edges of one length make one round. The longest edges
/// come first, or last if `upwards`.
template <class Pass>
void for_binomial_edges(Team& team, bool upwards, Pass&& pass) {
  const std::uint32_t p = team.size();
  const auto rounds = static_cast<std::uint32_t>(std::bit_width(p - 1));
  for (std::uint32_t i = 0; i < rounds; ++i) {
    const std::uint32_t length = 1u << (upwards ? i : rounds - 1 - i);
    team.next_round();
    for (std::uint32_t parent = 0; parent + length < p; parent += 2 * length)
      pass((parent + team.root()) % p, (parent + length + team.root()) % p,
           std::min(length, p - parent - length));
  }
}

}  // namespace heddle::inline v0::schedule::impl
