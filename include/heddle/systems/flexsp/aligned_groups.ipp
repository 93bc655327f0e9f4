// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// Definitions of aligned_groups.hpp.

#include <bit>
#include <cstddef>
#include <span>
#include <vector>

#include <heddle/core/contract.hpp>
#include <heddle/core/linkage.hpp>
#include <heddle/core/text.hpp>
#include <heddle/systems/flexsp/aligned_groups.hpp>

namespace heddle::inline v0::systems {

HEDDLE_INLINE int group_levels(int ranks) {
  expects(ranks >= 1, [&] {
    return ErrorInfo{"heddle::systems::group_levels", "groups have at least one rank",
                     text(ranks, " ranks")};
  });
  return static_cast<int>(std::bit_width(static_cast<unsigned>(ranks)));
}

HEDDLE_INLINE std::vector<AlignedGroup> aligned_groups(std::span<const int> sizes) {
  std::vector<AlignedGroup> of_rank;
  for (std::size_t g = 0; g < sizes.size(); ++g) {
    const int size = sizes[g];
    expects(size >= 1 && std::has_single_bit(static_cast<unsigned>(size)) &&
                (g == 0 || size <= sizes[g - 1]),
            [&] {
              return ErrorInfo{"heddle::systems::aligned_groups",
                               "the sizes of groups are falling powers of two",
                               text("group ", g, " of ", size, " ranks",
                                    g == 0 ? "" : text(" behind one of ", sizes[g - 1]))};
            });
    const auto count = static_cast<std::size_t>(size);
    const AlignedGroup group{group_levels(size) - 1, of_rank.size() / count};
    of_rank.insert(of_rank.end(), count, group);
  }
  return of_rank;
}

}  // namespace heddle::inline v0::systems
