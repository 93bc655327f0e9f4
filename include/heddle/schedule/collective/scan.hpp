// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// Scans: every member ends with the merge of all members up to it, or before it. Recursive
/// doubling suits little data, a chain suits much data. All algorithms merge members in their
/// order.

#include <cstdint>
#include <vector>

#include <heddle/core/linkage.hpp>
#include <heddle/schedule/action.hpp>
#include <heddle/schedule/collective/team.hpp>

namespace heddle::inline v0 {

class Builder;

}  // namespace heddle::inline v0

namespace heddle::inline v0::schedule {

/// Inclusive scan by recursive doubling (Hillis and Steele, CACM 29 (1986)). At each distance d =
/// 1, 2, 4, ... below P, all members except the last d send C messages of m bytes in total. With
/// one chunk, if links do not share a port, the time is at most k (a + m / b), with k = ceil(log2
/// P).
void recursive_doubling_inclusive_scan(Team& team);

/// Inclusive scan down a chain. All members except the last send C messages, of m bytes in total.
/// With x = m / (C b) the time is (P-1)(a + x) + (C-1) x.
void chain_inclusive_scan(Team& team);

/// Exclusive scan by recursive doubling. Compared to the inclusive scan, all members except the
/// last send C more messages, and make C copies of m bytes in total. With one chunk the time
/// without copies is at most (1 + k) (a + m / b), with k = ceil(log2 (P-1)). Member 0 is not
/// written.
void recursive_doubling_exclusive_scan(Team& team);

/// Exclusive scan down a chain, with the same additional messages and copies. With one chunk the
/// time without copies is (P-1)(a + m / b).
void chain_exclusive_scan(Team& team);

/// Appends to `members` the storage for intermediate results of an exclusive scan: transient
/// buffers of role "scratch".
void keep_scanned(Builder& builder, std::vector<Use>& members, std::uint32_t, std::uint32_t);

}  // namespace heddle::inline v0::schedule

#if HEDDLE_DEFINES_SCHEDULE_COLLECTIVE
#include <heddle/schedule/collective/scan.ipp>
#endif
