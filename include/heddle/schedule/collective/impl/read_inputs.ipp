// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// Definitions of algorithms.hpp: read inputs.

#include <cstdint>

#include <heddle/core/linkage.hpp>
#include <heddle/schedule/collective/impl/algorithms.hpp>
#include <heddle/schedule/collective/impl/rounds.hpp>

namespace heddle::inline v0::schedule::impl {

HEDDLE_INLINE void read_inputs(Rounds& rounds, std::uint32_t ranks, std::uint32_t each) {
  for (Round& round : rounds) {
    for (Hop& hop : round) {
      const std::uint32_t own = hop.from.member * each;
      hop.to.member += ranks;
      if (hop.from.first >= own && hop.from.first + hop.from.count <= own + each)
        hop.from.first -= own;
      else
        hop.from.member += ranks;
    }
  }
  if (rounds.empty()) rounds.emplace_back();
  for (std::uint32_t rank = 0; rank < ranks; ++rank)
    rounds.front().push_back({{rank, 0, each}, {ranks + rank, rank * each, each}});
}

}  // namespace heddle::inline v0::schedule::impl
