// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// Recursive doubling and halving: partners at distance 1, 2, 4, ... exchange. Fewest steps for
/// little data; and with halving few steps for much data, too.

#include <heddle/core/linkage.hpp>
#include <heddle/schedule/collective/team.hpp>

namespace heddle::inline v0::schedule {

/// All-reduce by recursive doubling. Of P = 2^k + s members each of the 2^k corners sends k C
/// messages of k m bytes in all, and each of s pairs C messages of m bytes there and back. Partners
/// merge in one order, that of the members, and so does everybody. Time with one chunk: k (a + m /
/// b), and at most 2 (a + m / b) more where s > 0.
void recursive_doubling_all_reduce(Team& team);

/// All-gather by recursive doubling. With P = 2^k, everybody sends k C messages, of d m / P bytes
/// at distance d, (P-1) m / P in all; time with one chunk: k a + (P-1) m / (P b). A surplus member
/// sends its block to its corner and gets all others from there.
void recursive_doubling_all_gather(Team& team);

/// Reduce-scatter by recursive halving: the same backwards. Surplus members send all their blocks
/// first, and get their own at the end.
void recursive_halving_reduce_scatter(Team& team);

/// All-reduce by recursive halving, then doubling (Rabenseifner, ICCS 2004). With P = 2^k: 2 k
/// messages of 2 (P-1) m / P bytes in all from everybody; time with one chunk 2 k a + 2 (P-1) m /
/// (P b).
void recursive_halving_all_reduce(Team& team);

}  // namespace heddle::inline v0::schedule

#if HEDDLE_HEADER_ONLY
#include <heddle/schedule/collective/recursive.ipp>
#endif
