// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// Binomial trees: whoever has it passes it on. Few steps for little data from or to one root.

#include <algorithm>
#include <bit>
#include <cstdint>

#include <heddle/schedule/collective/team.hpp>

namespace heddle::inline v0::schedule {

namespace impl {

/// The edges of a binomial tree over P members, 0 being its root: `pass(parent, child, count)` for
/// the edge to the tree of `child`, which has the members [child, child + count). A round for each
/// length of edges, the longest first; or last.
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

}  // namespace impl

/// Broadcast down a binomial tree: C messages of m bytes in all over each of P - 1 edges, up to
/// ceil(log2 P) of them from the root. Time with x = m / (C b): D (a + x) + (C-1) x, where D is the
/// greatest number of ones that a number below P has.
inline void binomial_broadcast(Team& team) {
  impl::for_binomial_edges(team, false, [&](auto parent, auto child, auto) {
    team.copy(parent, child, 0, team.blocks());
  });
}

/// Reduction up a binomial tree: the broadcast backwards, with the same time where there is one
/// chunk. With root 0 the members' order is kept: each is merged behind all before it.
inline void binomial_reduce(Team& team) {
  impl::for_binomial_edges(team, true, [&](auto parent, auto child, auto) {
    team.merge(child, parent, 0, team.blocks());
  });
}

}  // namespace heddle::inline v0::schedule
