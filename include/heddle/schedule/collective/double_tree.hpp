// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// Double trees: two binary trees with half of the data each, in which no member has children in
/// both. Few steps and full bandwidth, with many chunks.

#include <heddle/core/linkage.hpp>
#include <heddle/schedule/collective/team.hpp>

namespace heddle::inline v0::schedule {

/// Broadcast of half of the data down each of two trees of the others, whose roots the root feeds:
/// C messages of m / 2 bytes in all over each edge, at most two of them from anybody. Time with x =
/// m / (2 C b) and P > 2: (1 + floor(log2(P-1)))(a + x) + (C-1) x.
void double_tree_broadcast(Team& team);

/// All-reduce of half of the data up and down each of two trees: C messages of m / 2 bytes in all
/// over each edge, up and down. Time with one chunk: 2 floor(log2 P) (a + m / (2 b)).
void double_tree_all_reduce(Team& team);

}  // namespace heddle::inline v0::schedule

#if HEDDLE_HEADER_ONLY
#include <heddle/schedule/collective/double_tree.ipp>
#endif
