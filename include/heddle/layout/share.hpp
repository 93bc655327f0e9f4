// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// Share: which of some things one rank of several has, where they are dealt out evenly and in
/// order. Collective calls deal out blocks in the same way.

#include <cstddef>

namespace heddle::inline v0 {

/// The things [first, first + count).
struct Share {
  std::size_t first = 0;  ///< the first of them
  std::size_t count = 0;  ///< how many they are

  /// One past the last.
  [[nodiscard]] constexpr std::size_t end() const noexcept { return first + count; }
  friend constexpr bool operator==(const Share&, const Share&) = default;
};

/// What rank `rank` of `ranks` has of `count` things: the first count % ranks of them have one
/// more, and the last ones none where there are fewer things than ranks.
[[nodiscard]] constexpr Share even_share(std::size_t count, std::size_t ranks,
                                         std::size_t rank) noexcept {
  const std::size_t each = count / ranks, extra = count % ranks;
  return {rank * each + (rank < extra ? rank : extra), each + (rank < extra ? 1 : 0)};
}

}  // namespace heddle::inline v0
