// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// Definitions of algorithms.hpp: binomial tree.

#include <heddle/core/linkage.hpp>
#include <heddle/schedule/collective/impl/algorithms.hpp>
#include <heddle/schedule/collective/impl/binomial_edges.hpp>
#include <heddle/schedule/collective/impl/team.hpp>

namespace heddle::inline v0::schedule::impl {

HEDDLE_INLINE void binomial_broadcast(Team& team) {
  for_binomial_edges(team, false, [&](auto parent, auto child, auto) {
    team.copy(parent, child, 0, team.blocks());
  });
}

HEDDLE_INLINE void binomial_reduce(Team& team) {
  for_binomial_edges(team, true, [&](auto parent, auto child, auto) {
    team.merge(child, parent, 0, team.blocks());
  });
}

}  // namespace heddle::inline v0::schedule::impl
