// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// Bruck's all-to-all: a message in each of ceil(log2 P) rounds, for short blocks. Ranks keep on
/// the way what is not for them.

#include <cstdint>
#include <vector>

#include <heddle/core/linkage.hpp>
#include <heddle/schedule/action.hpp>
#include <heddle/schedule/collective/team.hpp>

namespace heddle::inline v0 {

class Builder;

}  // namespace heddle::inline v0

namespace heddle::inline v0::schedule {

/// All-to-all in k = ceil(log2 P) rounds (Bruck et al., IEEE TPDS 8 (1997)): outputs are members P
/// to 2 P - 1, and what rank r keeps is member 2 P + r. The block from rank s to rank s + w,
/// around, takes a step for each binary digit of w, the shortest first: C messages in each round
/// from everybody, of the blocks with that digit, at most P / 2 of them. They are copied
/// together before, and out of the message after it: P + n copies, n being the blocks in all
/// messages. Time with one chunk, but for the copies: k a + n m / (P b), and n = k P / 2 where P =
/// 2^k.
void bruck_all_to_all(Team& team);

/// Appends to the members of such an all-to-all, of blocks of `chunks` parts, what ranks keep on
/// the way: transient storage of role "scratch".
void keep_for_bruck(Builder& builder, std::vector<Use>& members, std::uint32_t,
                    std::uint32_t chunks);

}  // namespace heddle::inline v0::schedule

#if HEDDLE_HEADER_ONLY
#include <heddle/schedule/collective/bruck_all_to_all.ipp>
#endif
