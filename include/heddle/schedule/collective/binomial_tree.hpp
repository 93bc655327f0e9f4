// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// Binomial trees: ranks that have the data pass it on. They need few steps for little data from or
/// to one root.

#include <heddle/core/linkage.hpp>
#include <heddle/schedule/collective/team.hpp>

namespace heddle::inline v0::schedule {

/// Broadcast down a binomial tree. C messages of m bytes in total travel over each of P - 1 edges,
/// up to ceil(log2 P) of which leave the root. With x = m / (C b) the time is D (a + x) + (C-1) x,
/// where D is the largest number of one bits in a number below P.
void binomial_broadcast(Team& team);

/// Reduction up a binomial tree: the reverse of the broadcast. With one chunk the time is the same.
/// With root 0 it merges members in their order, each behind all members before it.
void binomial_reduce(Team& team);

}  // namespace heddle::inline v0::schedule

#if HEDDLE_DEFINES_SCHEDULE_COLLECTIVE
#include <heddle/schedule/collective/binomial_tree.ipp>
#endif
