// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// Bruck's all-to-all: one message in each of ceil(log2 P) rounds, for short blocks. Ranks store
/// and forward the blocks of other ranks.

#include <cstdint>
#include <vector>

#include <heddle/core/linkage.hpp>
#include <heddle/schedule/action.hpp>
#include <heddle/schedule/collective/team.hpp>

namespace heddle::inline v0 {

class Builder;

}  // namespace heddle::inline v0

namespace heddle::inline v0::schedule {

/// All-to-all in k = ceil(log2 P) rounds (Bruck et al., IEEE TPDS 8 (1997)). The outputs are
/// members P to 2 P - 1. The storage of rank r for blocks in transit is member 2 P + r. The block
/// from rank s to rank s + w (modulo P) takes one step for each one bit of w, the lowest bit first.
/// In each round every member sends C messages, which hold the blocks with that bit, at most P / 2
/// blocks. Blocks are copied together before a message and out of it afterwards: P + n copies,
/// where n is the number of blocks in all messages of a member. With one chunk the time without
/// copies is k a + n m / (P b), and n = k P / 2 if P = 2^k.
void bruck_all_to_all(Team& team);

/// Appends to `members` the storage for blocks in transit that bruck_all_to_all() needs: for each
/// rank a transient buffer of role "scratch". Each block has `chunks` parts.
void keep_for_bruck(Builder& builder, std::vector<Use>& members, std::uint32_t,
                    std::uint32_t chunks);

}  // namespace heddle::inline v0::schedule

#if HEDDLE_DEFINES_SCHEDULE_COLLECTIVE
#include <heddle/schedule/collective/bruck_all_to_all.ipp>
#endif
