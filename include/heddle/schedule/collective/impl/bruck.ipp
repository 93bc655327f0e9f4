// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// Definitions of algorithms.hpp: bruck.

#include <algorithm>
#include <bit>
#include <cstdint>

#include <heddle/core/linkage.hpp>
#include <heddle/schedule/collective/impl/algorithms.hpp>
#include <heddle/schedule/collective/impl/team.hpp>

namespace heddle::inline v0::schedule::impl {

HEDDLE_INLINE void bruck_all_gather(Team& team) {
  const std::uint32_t p = team.size();
  for (std::uint32_t distance = 1; distance < p; distance *= 2) {
    team.next_round();
    for (std::uint32_t r = 0; r < p; ++r)
      team.copy(r, (r + p - distance) % p, r, std::min(distance, p - distance));
  }
}

HEDDLE_INLINE void bruck_reduce_scatter(Team& team) {
  const std::uint32_t p = team.size();
  for (std::uint32_t distance = std::bit_ceil(p) / 2; distance > 0; distance /= 2) {
    team.next_round();
    for (std::uint32_t r = 0; r < p; ++r) {
      const std::uint32_t to = (r + distance) % p;
      team.merge(r, to, to, std::min(distance, p - distance));
    }
  }
}

HEDDLE_INLINE void bruck_barrier(Team& team) {
  const std::uint32_t p = team.size();
  std::uint32_t told = 1;
  for (std::uint32_t distance = 1; distance < p; distance *= 2, ++told) {
    team.next_round();
    for (std::uint32_t r = 0; r < p; ++r) team.copy({r, 0, told}, {(r + distance) % p, told, 1});
  }
}

}  // namespace heddle::inline v0::schedule::impl
