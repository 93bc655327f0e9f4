// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// Direct: every block goes straight from its source to its destination, all in one round.

#include <heddle/core/linkage.hpp>
#include <heddle/schedule/collective/team.hpp>

namespace heddle::inline v0::schedule {

/// Every member sends block q to member q, which merges what it gets: (P - 1) C messages each.
/// Block s is merged in the order x[s], x[s+1], ..., around. Time with x = m / (P C b): a + C x;
/// that of an all-reduce, which is this and an all-gather: max(2 (a + x) + (C-1) x, a + 2 C x).
void direct_reduce_scatter(Team& team);

/// Every member r sends block r to all others: (P - 1) C messages each. Time as above.
void direct_all_gather(Team& team);

/// The outputs are members P to 2 P - 1: (P - 1) C messages and C local copies each.
void direct_all_to_all(Team& team);

/// Every input, of one block, goes to the output of the root, which is member P: C messages
/// from everybody but the root, whose own is a local copy.
void direct_gather(Team& team);

/// Every block of the root's input, which is member 0, goes to the output of one rank, of which
/// that of rank r is member r + 1.
void direct_scatter(Team& team);

}  // namespace heddle::inline v0::schedule

#if HEDDLE_HEADER_ONLY
#include <heddle/schedule/collective/direct.ipp>
#endif
