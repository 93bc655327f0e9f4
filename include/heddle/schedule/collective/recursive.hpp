// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// Recursive doubling and halving: partners at distance 1, 2, 4, ... exchange data. Doubling needs
/// the fewest steps for little data. Halving needs few steps for much data, too.

#include <heddle/core/linkage.hpp>
#include <heddle/schedule/collective/team.hpp>

namespace heddle::inline v0::schedule {

/// All-reduce by recursive doubling. Of P = 2^k + s members, 2^k are corners of a hypercube. Each
/// corner sends k C messages of k m bytes in total. Each of s surplus members exchanges C messages
/// of m bytes in each direction with its corner. All members merge in the same order, that of the
/// members. With one chunk the time is k (a + m / b), plus at most 2 (a + m / b) if s > 0.
void recursive_doubling_all_reduce(Team& team);

/// All-gather by recursive doubling. With P = 2^k every member sends k C messages: d m / P bytes at
/// distance d, (P-1) m / P bytes in total. With one chunk the time is k a + (P-1) m / (P b). A
/// surplus member sends its block to its corner, and receives all other blocks from it.
void recursive_doubling_all_gather(Team& team);

/// Reduce-scatter by recursive halving: the reverse of the all-gather. Surplus members send all of
/// their blocks first, and receive their own block at the end.
void recursive_halving_reduce_scatter(Team& team);

/// All-reduce by recursive halving, then doubling (Rabenseifner, ICCS 2004). With P = 2^k every
/// member sends 2 k C messages of 2 (P-1) m / P bytes in total. With one chunk the time is
/// 2 k a + 2 (P-1) m / (P b).
void recursive_halving_all_reduce(Team& team);

}  // namespace heddle::inline v0::schedule

#if HEDDLE_DEFINES_SCHEDULE_COLLECTIVE
#include <heddle/schedule/collective/recursive.ipp>
#endif
