// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// Gather and scatter along a binomial tree: whoever has children keeps the blocks of their trees
/// on the way.

#include <cstdint>
#include <vector>

#include <heddle/core/linkage.hpp>
#include <heddle/schedule/action.hpp>
#include <heddle/schedule/collective/team.hpp>

namespace heddle::inline v0 {

class Builder;

}  // namespace heddle::inline v0

namespace heddle::inline v0::schedule {

/// Gather up a binomial tree: member P is the root's output. A rank with children copies its own
/// block beside theirs, and sends those of its tree at once: C messages over each of P - 1 edges
/// (twice as many at the root where its blocks lie around the end), ceil(log2 P) rounds after the
/// copies.
void binomial_gather(Team& team);

/// Scatter down a binomial tree, the gather backwards: member 0 is the root's input, and those
/// after it are the outputs.
void binomial_scatter(Team& team);

/// Appends to the members of such a gather, of blocks of `chunks` parts, what ranks keep on the
/// way: transient storage of role "scratch".
void keep_gathered(Builder& builder, std::vector<Use>& members, std::uint32_t root,
                   std::uint32_t chunks);

/// The same of such a scatter.
void keep_scattered(Builder& builder, std::vector<Use>& members, std::uint32_t root,
                    std::uint32_t chunks);

}  // namespace heddle::inline v0::schedule

#if HEDDLE_HEADER_ONLY
#include <heddle/schedule/collective/store_and_forward.ipp>
#endif
