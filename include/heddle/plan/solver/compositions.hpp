// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// for_each_composition(): the ways to divide a number into positive parts, in order.

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace heddle::inline v0::plan {

/// Returns the number of compositions of `total` into `parts` parts, which is
/// binomial(total - 1, parts - 1), or 0 if there are none. The number times `parts` must be below
/// 2^64.
[[nodiscard]] constexpr std::uint64_t compositions(int total, int parts) noexcept {
  if (parts < 1 || parts > total) return 0;
  std::uint64_t count = 1;
  for (int i = 1; i < parts; ++i)
    count = count * static_cast<std::uint64_t>(total - i) / static_cast<std::uint64_t>(i);
  return count;
}

/// Calls `visit(numbers)` for each list of `parts` positive integers whose sum is `total`, in
/// lexicographic order. Such a list is a composition: the same numbers in another order are another
/// one. `numbers` is valid during the call only. If `parts` is below 1 or above `total`, there is
/// no composition, and `visit` is not called.
template <std::invocable<std::span<const int>> Visit>
void for_each_composition(int total, int parts, Visit&& visit) {
  if (parts < 1 || parts > total) return;
  std::vector<int> numbers(static_cast<std::size_t>(parts), 1);
  numbers.back() = total - parts + 1;
  while (true) {
    visit(std::span<const int>(numbers));
    // The last number gives one to the rightmost number that can grow; what is behind it restarts.
    std::size_t last = numbers.size();
    while (last != 0 && numbers[last - 1] == 1) --last;
    if (last < 2) return;
    const int rest = numbers[last - 1] - 1;
    numbers[last - 1] = 1;
    ++numbers[last - 2];
    numbers.back() = rest;
  }
}

}  // namespace heddle::inline v0::plan
