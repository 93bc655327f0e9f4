// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// Rings: every member sends to its neighbours only, so that no link carries more than its share.
///
/// In the closed forms of all algorithms P is the number of members, m the bytes of the whole (of P
/// equal blocks), a the latency and b the bandwidth of every link, and C the chunks; merging is
/// free.

#include <cstdint>

#include <heddle/schedule/collective/team.hpp>

namespace heddle::inline v0::schedule {

namespace impl {

/// P - 1 steps of a ring, in which every member passes on the block that it has got; it begins with
/// the block `start` behind its own. With two ways the second half of every block goes round the
/// other way.
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

}  // namespace impl

/// Reduce-scatter around a ring: every member sends (P - 1) C messages, of all blocks but its own.
/// Block s is merged in the order x[s+1], x[s+2], ..., x[s], around. Time with x = m / (P C b):
/// max((P-1)(a + x) + (C-1) x, (P-1) C x + a); that of an all-reduce, which is this and an
/// all-gather, has 2 (P-1) for P - 1.
inline void ring_reduce_scatter(Team& team) { impl::reduce_round<false>(team); }

/// All-gather around a ring: every member sends (P - 1) C messages, of all blocks but that of the
/// next one. Time as of the reduce-scatter.
inline void ring_all_gather(Team& team) { impl::gather_round<false>(team); }

/// Reduce-scatter around two rings, which run against each other with half of every block: as one
/// ring with half of the bytes, and twice the messages.
inline void bidirectional_ring_reduce_scatter(Team& team) { impl::reduce_round<true>(team); }

/// All-gather around two rings, likewise.
inline void bidirectional_ring_all_gather(Team& team) { impl::gather_round<true>(team); }

/// Broadcast down a chain that begins at the root: P - 1 members send C messages, of m bytes in
/// all. Time with x = m / (C b): (P-1)(a + x) + (C-1) x.
inline void ring_broadcast(Team& team) {
  const std::uint32_t p = team.size();
  for (std::uint32_t k = 0; k + 1 < p; ++k) {
    team.next_round();
    team.copy((team.root() + k) % p, (team.root() + k + 1) % p, 0, team.blocks());
  }
}

/// Reduction down a chain that ends at the root; as the broadcast, backwards. The root has x[root]
/// + (x[root+1] + (x[root+2] + ...)), around.
inline void ring_reduce(Team& team) {
  const std::uint32_t p = team.size();
  for (std::uint32_t k = p - 1; k > 0; --k) {
    team.next_round();
    team.merge((team.root() + k) % p, (team.root() + k - 1) % p, 0, team.blocks());
  }
}

}  // namespace heddle::inline v0::schedule
