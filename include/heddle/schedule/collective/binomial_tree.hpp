// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// Binomial trees: whoever has it passes it on. Few steps for little data from or to one root.

#include <heddle/core/linkage.hpp>
#include <heddle/schedule/collective/team.hpp>

namespace heddle::inline v0::schedule {

/// Broadcast down a binomial tree: C messages of m bytes in all over each of P - 1 edges, up to
/// ceil(log2 P) of them from the root. Time with x = m / (C b): D (a + x) + (C-1) x, where D is the
/// greatest number of ones that a number below P has.
void binomial_broadcast(Team& team);

/// Reduction up a binomial tree: the broadcast backwards, with the same time where there is one
/// chunk. With root 0 the members' order is kept: each is merged behind all before it.
void binomial_reduce(Team& team);

}  // namespace heddle::inline v0::schedule

#if HEDDLE_HEADER_ONLY
#include <heddle/schedule/collective/binomial_tree.ipp>
#endif
