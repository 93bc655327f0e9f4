// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// Scans: every member ends with the merge of all members up to it, or before it. By recursive
/// doubling for little data, down a chain for much. All of them merge members in their order.

#include <cstdint>
#include <vector>

#include <heddle/core/linkage.hpp>
#include <heddle/schedule/action.hpp>
#include <heddle/schedule/collective/team.hpp>

namespace heddle::inline v0 {

class Builder;

}  // namespace heddle::inline v0

namespace heddle::inline v0::schedule {

/// Inclusive scan by recursive doubling (Hillis and Steele, CACM 29 (1986)): at distance d = 1, 2,
/// 4, ... below P all members but the last d send C messages of m bytes in all. Time with one
/// chunk, where links do not share a port: at most k (a + m / b), with k = ceil(log2 P).
void recursive_doubling_inclusive_scan(Team& team);

/// Inclusive scan down a chain: all members but the last send C messages, of m bytes in all. Time
/// with x = m / (C b): (P-1)(a + x) + (C-1) x.
void chain_inclusive_scan(Team& team);

/// Exclusive scan by recursive doubling: C messages more from everybody but the last, and C copies
/// of m bytes in all. Time with one chunk, but for the copies: at most (1 + k) (a + m / b), with k
/// = ceil(log2 (P-1)). Member 0 is not written.
void recursive_doubling_exclusive_scan(Team& team);

/// Exclusive scan down a chain, with as many messages and copies more. Time with one chunk, but for
/// the copies: (P-1)(a + m / b).
void chain_exclusive_scan(Team& team);

/// Appends to the members of an exclusive scan what ranks keep on the way: transient storage of
/// role "scratch".
void keep_scanned(Builder& builder, std::vector<Use>& members, std::uint32_t, std::uint32_t);

}  // namespace heddle::inline v0::schedule

#if HEDDLE_HEADER_ONLY
#include <heddle/schedule/collective/scan.ipp>
#endif
