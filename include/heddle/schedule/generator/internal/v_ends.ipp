// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// Definitions of v_ends.hpp.

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <vector>

#include <heddle/core/linkage.hpp>
#include <heddle/schedule/generator/internal/v_ends.hpp>

namespace heddle::inline v0::schedule::impl {

HEDDLE_INLINE void VCells::reorder_begin(std::size_t most) const {
  std::erase(cells, std::uint8_t{idle});
  const auto end = std::ranges::find(cells, std::uint8_t{near_input});
  std::array<std::size_t, 5> left = {};
  for (auto at = cells.begin(); at != end; ++at) ++left[*at];
  std::vector<std::uint8_t> list;
  const auto take = [&](Cell cell) {
    if (left[cell] == 0) return false;
    --left[cell];
    list.push_back(cell);
    return true;
  };
  // The forwards that fill the memory before the first backward.
  std::size_t far = std::min({rank + 1, most / 2, microbatches});
  std::size_t near = std::min(most - far, microbatches);
  const auto fill = [&](Cell cell, std::size_t& wanted) {
    if (wanted > 0 && take(cell)) --wanted;
  };
  for (std::size_t i = 0; i < 2 * (ranks - 1 - rank); ++i) fill(near_forward, near);
  for (std::size_t i = 0; i <= rank; ++i) {
    fill(near_forward, near);
    fill(far_forward, far);
  }
  // Each backward then makes room for a forward.
  const auto all = static_cast<std::size_t>(end - cells.begin());
  while (list.size() < all) {
    take(far_input);
    take(weights);
    if (!take(far_forward)) take(near_forward);
  }
  std::ranges::copy(list, cells.begin());
}

HEDDLE_INLINE void VCells::keep(std::size_t count) const {
  std::array<std::size_t, 5> next = {};
  std::vector<bool> removed;  // by I
  for (std::uint8_t& cell : cells) {
    if (cell == idle) continue;
    const std::size_t item = next[cell]++;
    const bool remove = cell == weights ? removed[item] : item >= count;
    if (is_input(cell)) removed.push_back(remove);
    if (remove) cell = idle;
  }
}

HEDDLE_INLINE bool VCells::reorder_end(std::size_t most, std::size_t fold) const {
  const std::size_t near = std::min((most + 1) / 2, microbatches);
  const std::size_t far = std::min({most - near, microbatches, rank + 1});
  remove_end(most, near, far);
  bool fits = true;
  const auto put = [&](Cell cell, std::size_t last, std::size_t count) {
    for (std::size_t i = 0; i < count; ++i) {
      fits = fits && last >= 2 * i;
      if (!fits) return;
      const std::size_t slot = last - 2 * i;
      if (cells.size() <= slot) cells.resize(slot + 1, idle);
      fits = cells[slot] == idle;
      cells[slot] = cell;
    }
  };
  put(near_input, fold + 2 * ranks - rank, near);
  put(far_input, fold + 1 + rank, far);
  return fits && add_weights();
}

/// Removes the last `near` and `far` I of the two legs. Removes W from the end until it has removed
/// those of as many I of each leg, and `most` in all.
HEDDLE_INLINE void VCells::remove_end(std::size_t most, std::size_t near, std::size_t far) const {
  std::vector<std::uint8_t> inputs;  // the k-th W is that of the k-th I
  for (const std::uint8_t cell : cells)
    if (is_input(cell)) inputs.push_back(cell);
  std::array<std::size_t, 5> removed = {}, freed = {};
  const auto wanted = [&](std::uint8_t leg) { return leg == near_input ? near : far; };
  for (std::size_t slot = cells.size(); slot-- > 0;) {
    std::uint8_t& cell = cells[slot];
    if (cell == weights) {
      const std::uint8_t leg = inputs.back();
      inputs.pop_back();
      if (freed[near_input] >= near && freed[far_input] >= far &&
          freed[near_input] + freed[far_input] >= most)
        continue;
      ++freed[leg];
      cell = idle;
    } else if (is_input(cell) && removed[cell] < wanted(cell)) {
      ++removed[cell];
      cell = idle;
    }
  }
}

/// Puts the missing W into the gaps behind the last W. Returns false if a W would come before its
/// I.
HEDDLE_INLINE bool VCells::add_weights() const {
  std::size_t first = cells.size();
  while (first > 0 && cells[first - 1] != weights) --first;
  std::size_t owed = 0;
  for (std::size_t slot = 0; slot < cells.size(); ++slot) {
    std::uint8_t& cell = cells[slot];
    if (cell == weights && owed == 0) return false;
    if (is_input(cell)) ++owed;
    if (cell == idle && slot >= first && owed > 0) cell = weights;
    if (cell == weights) --owed;
  }
  cells.insert(cells.end(), owed, weights);
  return true;
}

}  // namespace heddle::inline v0::schedule::impl
