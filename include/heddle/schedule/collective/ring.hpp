// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// Rings: every member sends only to its neighbours, so that all links carry the same load.
///
/// In the closed forms of all algorithms P is the number of members, m the number of bytes of the
/// complete data (of P equal blocks), a the latency and b the bandwidth of every link, and C the
/// number of chunks. Merging takes no time.

#include <heddle/core/linkage.hpp>
#include <heddle/schedule/collective/team.hpp>

namespace heddle::inline v0::schedule {

/// Reduce-scatter around a ring. Every member sends (P - 1) C messages, with all blocks except its
/// own. It merges block s in the cyclic order x[s+1], x[s+2], ..., x[s]. With x = m / (P C b) the
/// time is max((P-1)(a + x) + (C-1) x, (P-1) C x + a). The time of an all-reduce, which adds an
/// all-gather, has 2 (P-1) instead of P - 1.
void ring_reduce_scatter(Team& team);

/// All-gather around a ring. Every member sends (P - 1) C messages, with all blocks except that of
/// the next member. The time is that of the reduce-scatter.
void ring_all_gather(Team& team);

/// Reduce-scatter around two rings in opposite directions, with half of every block each. The time
/// is that of one ring with half of the bytes. The number of messages doubles.
void bidirectional_ring_reduce_scatter(Team& team);

/// All-gather around two rings in opposite directions, with half of every block each.
void bidirectional_ring_all_gather(Team& team);

/// Broadcast down a chain that begins at the root. Each of P - 1 members sends C messages, of m
/// bytes in total. With x = m / (C b) the time is (P-1)(a + x) + (C-1) x.
void ring_broadcast(Team& team);

/// Reduction down a chain that ends at the root: the reverse of the broadcast. The result is
/// x[root] + (x[root+1] + (x[root+2] + ...)), in cyclic order.
void ring_reduce(Team& team);

}  // namespace heddle::inline v0::schedule

#if HEDDLE_DEFINES_SCHEDULE_COLLECTIVE
#include <heddle/schedule/collective/ring.ipp>
#endif
