// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// Rings: every member sends to its neighbours only, so that no link carries more than its share.
///
/// In the closed forms of all algorithms P is the number of members, m the bytes of the whole (of P
/// equal blocks), a the latency and b the bandwidth of every link, and C the chunks; merging is
/// free.

#include <heddle/core/linkage.hpp>
#include <heddle/schedule/collective/team.hpp>

namespace heddle::inline v0::schedule {

/// Reduce-scatter around a ring: every member sends (P - 1) C messages, of all blocks but its own.
/// Block s is merged in the order x[s+1], x[s+2], ..., x[s], around. Time with x = m / (P C b):
/// max((P-1)(a + x) + (C-1) x, (P-1) C x + a); that of an all-reduce, which is this and an
/// all-gather, has 2 (P-1) for P - 1.
void ring_reduce_scatter(Team& team);

/// All-gather around a ring: every member sends (P - 1) C messages, of all blocks but that of the
/// next one. Time as of the reduce-scatter.
void ring_all_gather(Team& team);

/// Reduce-scatter around two rings, which run against each other with half of every block: as one
/// ring with half of the bytes, and twice the messages.
void bidirectional_ring_reduce_scatter(Team& team);

/// All-gather around two rings, likewise.
void bidirectional_ring_all_gather(Team& team);

/// Broadcast down a chain that begins at the root: P - 1 members send C messages, of m bytes in
/// all. Time with x = m / (C b): (P-1)(a + x) + (C-1) x.
void ring_broadcast(Team& team);

/// Reduction down a chain that ends at the root; as the broadcast, backwards. The root has x[root]
/// + (x[root+1] + (x[root+2] + ...)), around.
void ring_reduce(Team& team);

}  // namespace heddle::inline v0::schedule

#if HEDDLE_HEADER_ONLY
#include <heddle/schedule/collective/ring.ipp>
#endif
