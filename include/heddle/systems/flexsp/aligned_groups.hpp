// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// aligned_groups(): the group of each rank for groups of several sizes, so that the communicators
/// of all plans are made once.

#include <compare>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include <heddle/core/index.hpp>
#include <heddle/core/linkage.hpp>

namespace heddle::inline v0::systems {

/// A group of 2^`level` consecutive ranks that begins at a multiple of its size.
struct AlignedGroup {
  int level = 0;          ///< the logarithm of the number of ranks
  std::size_t index = 0;  ///< number of the group among those of its level

  /// Returns the number of ranks.
  [[nodiscard]] constexpr std::size_t ranks() const noexcept { return std::size_t{1} << level; }
  /// Returns the first rank.
  [[nodiscard]] constexpr Rank first() const noexcept {
    return Rank{static_cast<std::uint32_t>(index << level)};
  }
  /// Compares by level, then by index.
  friend constexpr auto operator<=>(const AlignedGroup&, const AlignedGroup&) = default;
};

/// Returns the number of levels of `ranks` ranks, floor(log2(ranks)) + 1. A split of a communicator
/// for each level, in which rank r takes the colour r >> level, makes every aligned group.
/// @throws contract_error if there is no rank.
[[nodiscard]] int group_levels(int ranks);

/// Returns the group of every rank if the ranks are divided into groups of these sizes, in this
/// order. Because the sizes are falling powers of two, every group begins at a multiple of its
/// size.
/// @throws contract_error if a size is not a power of two or is larger than the size before it.
[[nodiscard]] std::vector<AlignedGroup> aligned_groups(std::span<const int> sizes);

}  // namespace heddle::inline v0::systems

#if HEDDLE_DEFINES_SYSTEMS
#include <heddle/systems/flexsp/aligned_groups.ipp>
#endif
