// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// Bruck's algorithms: ceil(log P) rounds for any number of members, at distance 1, 2, 4, ...
/// around, and no byte more than a ring sends.

#include <heddle/core/linkage.hpp>
#include <heddle/schedule/collective/team.hpp>

namespace heddle::inline v0::schedule {

/// All-gather: in the round at distance d everybody has d blocks, its own and those after it, and
/// sends them, or those of them that are still missing, to the member d before it: k = ceil(log2 P)
/// rounds, P - 1 blocks in all, a round's in two messages where they lie around the end. Time with
/// one chunk: at most k a + (P-1) m / (P b), and that where P = 2^k. Bruck et al., IEEE TPDS 8
/// (1997), without its rotations: blocks lie where they belong.
void bruck_all_gather(Team& team);

/// Reduce-scatter: the all-gather backwards. Block s is merged along the same tree.
void bruck_reduce_scatter(Team& team);

/// Barrier by dissemination (Hensgen, Finkel and Manber, 1988): k = ceil(log2 P) messages of no
/// bytes from everybody, and a time of k a. Block i + 1 of a member is what it is told in round i.
void bruck_barrier(Team& team);

}  // namespace heddle::inline v0::schedule

#if HEDDLE_HEADER_ONLY
#include <heddle/schedule/collective/bruck.ipp>
#endif
