// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// The lists of group sizes that Metis tries.

#include <algorithm>
#include <bit>
#include <cstddef>
#include <limits>
#include <numeric>
#include <utility>
#include <vector>

namespace heddle::inline v0::systems::impl {

/// Appends the non-descending lists of `stages` numbers of `sizes`, from place `least` on, that sum
/// to `devices`. Lists of nearly equal numbers come first. Ends after `calls` calls of itself.
inline void add_lists(int devices, int stages, const std::vector<int>& sizes, std::size_t least,
                      std::vector<int>& list, std::vector<std::vector<int>>& all,
                      std::size_t& calls) {
  if (calls == 0) return;
  --calls;
  if (stages == 0) {
    if (devices == 0) all.push_back(list);
    return;
  }
  std::size_t end = least;
  while (end < sizes.size() && sizes[end] <= devices / stages) ++end;
  for (std::size_t i = end; i-- > least;) {
    list.push_back(sizes[i]);
    add_lists(devices - sizes[i], stages - 1, sizes, i, list, all, calls);
    list.pop_back();
  }
}

/// Returns the blocks of equal groups that are permuted, in ascending order.
[[nodiscard]] inline std::vector<std::vector<int>> permuted_blocks(const std::vector<int>& sizes,
                                                                   std::size_t longest) {
  std::vector<std::vector<int>> blocks;
  for (const int size : sizes) blocks.push_back({size});
  while (blocks.size() > longest) {
    auto place = std::ranges::adjacent_find(blocks);  // the smallest, because blocks are sorted
    if (place == blocks.end()) place = blocks.begin();
    place->insert(place->end(), (place + 1)->begin(), (place + 1)->end());
    blocks.erase(place + 1);
    std::ranges::sort(blocks, {}, [](const std::vector<int>& block) {
      return std::pair(std::accumulate(block.begin(), block.end(), 0), block);
    });
  }
  std::ranges::sort(blocks);
  return blocks;
}

/// Returns the lists of group sizes for a number of stages, in ascending order inside each list.
/// Lists of nearly equal sizes come first. Gives up after `calls` steps, of which it leaves none.
[[nodiscard]] inline std::vector<std::vector<int>> ascending_lists(int devices, int stages,
                                                                   double variance,
                                                                   std::size_t& calls) {
  const double smallest = variance * std::max(devices / stages, stages / devices);
  int odd = devices;
  while (odd % 2 == 0) odd /= 2;
  std::vector<int> sizes;
  for (int size = 1; size <= devices; ++size) {
    const int part = size % odd == 0 ? size / odd : size;
    if (size >= smallest && (std::has_single_bit(static_cast<unsigned>(size)) ||
                             std::has_single_bit(static_cast<unsigned>(part))))
      sizes.push_back(size);
  }
  std::vector<std::vector<int>> lists;
  std::vector<int> list;
  add_lists(devices, stages, sizes, 0, list, lists, calls);
  return lists;
}

/// Returns the orders of the lists that are tried, `most` at most.
[[nodiscard]] inline std::vector<std::vector<int>> permuted_lists(
    const std::vector<std::vector<int>>& ascending, int longest_permutation, std::size_t most) {
  std::vector<std::vector<int>> lists;
  for (const std::vector<int>& each : ascending) {
    auto blocks = permuted_blocks(each, static_cast<std::size_t>(longest_permutation));
    do {
      if (lists.size() == most) return lists;
      std::vector<int>& groups = lists.emplace_back();
      for (const std::vector<int>& block : blocks)
        groups.insert(groups.end(), block.begin(), block.end());
    } while (std::ranges::next_permutation(blocks).found);
  }
  return lists;
}

}  // namespace heddle::inline v0::systems::impl
