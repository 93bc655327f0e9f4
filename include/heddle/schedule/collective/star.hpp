// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// Stars: all to one, and one to all. Fewest latencies that a sum can have over slow links
/// (TPI-LLM, arXiv:2410.00531); but the port of the root carries it all.

#include <heddle/core/linkage.hpp>
#include <heddle/schedule/collective/team.hpp>

namespace heddle::inline v0::schedule {

/// All to one: C messages of m bytes in all from everybody; the root merges x[root] + x[root+1] +
/// ..., around. Time with x = m / (C b): a + C x where links do not share a port, a + (P-1) C x
/// where the root has one. An all-reduce, which is this and a broadcast, takes 2 a + (C+1) x, or
/// with one port and one chunk 2 (a + (P-1) m / b).
void star_reduce(Team& team);

/// One to all; as the reduction, backwards.
void star_broadcast(Team& team);

}  // namespace heddle::inline v0::schedule

#if HEDDLE_HEADER_ONLY
#include <heddle/schedule/collective/star.ipp>
#endif
