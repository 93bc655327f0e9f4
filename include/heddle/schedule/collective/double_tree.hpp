// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// Double trees: two binary trees with half of the data each. No member has children in both. With
/// many chunks they need few steps and use the full bandwidth.

#include <heddle/core/linkage.hpp>
#include <heddle/schedule/collective/team.hpp>

namespace heddle::inline v0::schedule {

/// Broadcast of half of the data down each of two trees. The trees hold all members except the
/// root, which sends to the roots of both trees. C messages of m / 2 bytes in total travel over
/// each edge, and a member has at most two outgoing edges. With x = m / (2 C b) and P > 2 the time
/// is (1 + floor(log2(P-1)))(a + x) + (C-1) x.
void double_tree_broadcast(Team& team);

/// All-reduce of half of the data up and down each of two trees. C messages of m / 2 bytes in total
/// travel over each edge in each direction. With one chunk the time is
/// 2 floor(log2 P) (a + m / (2 b)).
void double_tree_all_reduce(Team& team);

}  // namespace heddle::inline v0::schedule

#if HEDDLE_DEFINES_SCHEDULE_COLLECTIVE
#include <heddle/schedule/collective/double_tree.ipp>
#endif
