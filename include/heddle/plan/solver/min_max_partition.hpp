// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// min_max_partition(): cuts a chain into consecutive parts whose largest cost is least.

#include <algorithm>
#include <cstddef>
#include <optional>
#include <type_traits>
#include <utility>
#include <vector>

#include <heddle/core/contract.hpp>
#include <heddle/core/text.hpp>

namespace heddle::inline v0::plan {

/// The result of min_max_partition().
template <class Value>
struct MinMaxPartition {
  std::vector<int> ends;  ///< by part: one past its last item
  Value largest = {};     ///< the largest cost of a part
};

/// Returns the partition of `items` items in a row into `parts` consecutive parts, none of them
/// empty, whose largest cost is least. `cost(part, first, last)` is the cost of the items from
/// `first` up to but without `last` as part `part`. It must not fall if the part grows. The search
/// is a dynamic programme of at most parts * items^2 / 2 costs. Among equally good partitions it
/// takes one with the earliest first cut, and behind it the best partition of the rest.
/// @throws contract_error if `parts` is below 1 or above `items`.
template <class Cost>
[[nodiscard]] auto min_max_partition(int items, int parts, Cost&& cost) {
  using Value = std::decay_t<std::invoke_result_t<Cost&, int, int, int>>;
  expects(parts >= 1 && parts <= items, [&] {
    return ErrorInfo{"heddle::plan::min_max_partition", "every part needs at least one item",
                     text("items = ", items, ", parts = ", parts)};
  });
  struct Cell {
    std::optional<Value> largest;
    int end = 0;
  };
  const auto width = static_cast<std::size_t>(items) + 1;
  // By part and first item: the least largest cost of this part and all behind it.
  std::vector<Cell> cells(static_cast<std::size_t>(parts) * width);
  const auto at = [&](int part, int first) -> Cell& {
    return cells[static_cast<std::size_t>(part) * width + static_cast<std::size_t>(first)];
  };
  for (int part = parts - 1; part >= 0; --part) {
    const int behind = parts - 1 - part;  // parts that still need an item
    for (int first = part; first < items - behind; ++first) {
      Cell& cell = at(part, first);
      for (int end = behind == 0 ? items : first + 1; end <= items - behind; ++end) {
        Value own = cost(part, first, end);
        if (cell.largest && !(own < *cell.largest)) break;
        if (behind != 0) own = std::max(own, *at(part + 1, end).largest);
        if (!cell.largest || own < *cell.largest) cell = {std::move(own), end};
      }
    }
  }
  MinMaxPartition<Value> result;
  result.largest = *at(0, 0).largest;
  for (int part = 0, first = 0; part < parts; ++part)
    result.ends.push_back(first = at(part, first).end);
  return result;
}

}  // namespace heddle::inline v0::plan
