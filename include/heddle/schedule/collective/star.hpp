// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// Stars: all members send to the root, or the root sends to all. A sum has the fewest latencies
/// over slow links (TPI-LLM, arXiv:2410.00531), but the root's port carries all of the data.

#include <heddle/core/linkage.hpp>
#include <heddle/schedule/collective/team.hpp>

namespace heddle::inline v0::schedule {

/// Reduction to the root. Every other member sends it C messages of m bytes in total. The root
/// merges x[root] + x[root+1] + ..., in cyclic order. With x = m / (C b) the time is a + C x if
/// links do not share a port, or a + (P-1) C x if the root has one port. An all-reduce, which adds
/// a broadcast, takes 2 a + (C+1) x, or 2 (a + (P-1) m / b) with one port and one chunk.
void star_reduce(Team& team);

/// Broadcast from the root: the reverse of the reduction.
void star_broadcast(Team& team);

}  // namespace heddle::inline v0::schedule

#if HEDDLE_DEFINES_SCHEDULE_COLLECTIVE
#include <heddle/schedule/collective/star.ipp>
#endif
