// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// Gather and scatter along a binomial tree. Ranks with children store the blocks of their subtrees
/// and forward them.

#include <cstdint>
#include <vector>

#include <heddle/core/linkage.hpp>
#include <heddle/schedule/action.hpp>
#include <heddle/schedule/collective/team.hpp>

namespace heddle::inline v0 {

class Builder;

}  // namespace heddle::inline v0

namespace heddle::inline v0::schedule {

/// Gather up a binomial tree. Member P is the root's output. A rank with children copies its own
/// block next to their blocks, and sends the blocks of its subtree together. C messages travel over
/// each of P - 1 edges, or 2 C to the root if the blocks wrap around the end of its output. There
/// are ceil(log2 P) rounds after the copies.
void binomial_gather(Team& team);

/// Scatter down a binomial tree: the reverse of the gather. Member 0 is the root's input. The
/// outputs are the members after it.
void binomial_scatter(Team& team);

/// Appends to `members` the storage for blocks in transit that binomial_gather() needs: transient
/// buffers of role "scratch". Each block has `chunks` parts.
void keep_gathered(Builder& builder, std::vector<Use>& members, std::uint32_t root,
                   std::uint32_t chunks);

/// Appends to `members` the storage for blocks in transit that binomial_scatter() needs.
void keep_scattered(Builder& builder, std::vector<Use>& members, std::uint32_t root,
                    std::uint32_t chunks);

}  // namespace heddle::inline v0::schedule

#if HEDDLE_DEFINES_SCHEDULE_COLLECTIVE
#include <heddle/schedule/collective/store_and_forward.ipp>
#endif
