// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// Direct algorithms: every block goes from its source to its destination in one message. All
/// messages make one round.

#include <heddle/core/linkage.hpp>
#include <heddle/schedule/collective/team.hpp>

namespace heddle::inline v0::schedule {

/// Direct reduce-scatter. Every member sends block q to member q, which merges the blocks that it
/// receives: (P - 1) C messages from each member. It merges block s in the cyclic order x[s],
/// x[s+1], ... With x = m / (P C b) the time is a + C x. The time of an all-reduce, which adds an
/// all-gather, is max(2 (a + x) + (C-1) x, a + 2 C x).
void direct_reduce_scatter(Team& team);

/// Direct all-gather. Every member r sends block r to all others: (P - 1) C messages from each
/// member. The time is that of the reduce-scatter.
void direct_all_gather(Team& team);

/// Direct all-to-all. The outputs are members P to 2 P - 1. Each rank sends (P - 1) C messages and
/// makes C local copies.
void direct_all_to_all(Team& team);

/// Direct gather. Every input, of one block, goes to the output of the root, which is member P.
/// Each rank sends C messages, except the root, which copies its own block.
void direct_gather(Team& team);

/// Direct scatter. Every block of the root's input, which is member 0, goes to the output of one
/// rank. The output of rank r is member r + 1.
void direct_scatter(Team& team);

}  // namespace heddle::inline v0::schedule

#if HEDDLE_DEFINES_SCHEDULE_COLLECTIVE
#include <heddle/schedule/collective/direct.ipp>
#endif
