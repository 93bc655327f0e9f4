// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// even_share(): the share of one rank if things are divided evenly and in order. Collective calls
/// divide blocks in the same way.

#include <concepts>
#include <cstddef>
#include <type_traits>

namespace heddle::inline v0 {

/// A share: the things [first, first + count).
struct Share {
  std::size_t first = 0;  ///< the first thing
  std::size_t count = 0;  ///< number of things

  /// One past the last thing.
  [[nodiscard]] constexpr std::size_t end() const noexcept { return first + count; }
  friend constexpr bool operator==(const Share&, const Share&) = default;
};

namespace impl {

/// Returns the size of the share of rank `rank`; see even_share().
template <std::integral Count>
[[nodiscard]] constexpr Count even_count(Count count, std::type_identity_t<Count> ranks,
                                         std::type_identity_t<Count> rank) noexcept {
  return count / ranks + (rank < count % ranks ? 1 : 0);
}

}  // namespace impl

/// Returns the share of rank `rank` of `ranks` ranks in `count` things. The first count % ranks
/// ranks have one thing more than the others. If there are fewer things than ranks, the last ranks
/// have none.
[[nodiscard]] constexpr Share even_share(std::size_t count, std::size_t ranks,
                                         std::size_t rank) noexcept {
  const std::size_t each = count / ranks, extra = count % ranks;
  return {rank * each + (rank < extra ? rank : extra), each + (rank < extra ? 1 : 0)};
}

}  // namespace heddle::inline v0
