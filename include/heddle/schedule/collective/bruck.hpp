// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// Bruck's algorithms: ceil(log2 P) rounds for any number of members, at cyclic distances 1, 2, 4,
/// ... They send no more bytes than a ring.

#include <heddle/core/linkage.hpp>
#include <heddle/schedule/collective/team.hpp>

namespace heddle::inline v0::schedule {

/// All-gather in k = ceil(log2 P) rounds. Before the round at distance d every member has d blocks:
/// its own and the d - 1 blocks after it. It sends those that are still missing to the member d
/// before it. It sends P - 1 blocks in total. The blocks of a round take two messages if they wrap
/// around the end. With one chunk the time is at most k a + (P-1) m / (P b), with equality if
/// P = 2^k. Bruck et al., IEEE TPDS 8 (1997), without the rotations, because blocks lie at their
/// final positions.
void bruck_all_gather(Team& team);

/// Reduce-scatter: the reverse of the all-gather. It merges block s along the same tree.
void bruck_reduce_scatter(Team& team);

/// Barrier by dissemination (Hensgen, Finkel and Manber, 1988). Every member sends k = ceil(log2 P)
/// messages of no bytes. The time is k a. Block i + 1 of a member receives the message of round i.
void bruck_barrier(Team& team);

}  // namespace heddle::inline v0::schedule

#if HEDDLE_DEFINES_SCHEDULE_COLLECTIVE
#include <heddle/schedule/collective/bruck.ipp>
#endif
