// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// Definitions of group.hpp.

#include <cstddef>

#include <heddle/core/contract.hpp>
#include <heddle/core/linkage.hpp>
#include <heddle/core/text.hpp>
#include <heddle/schedule/order/internal/divided_orders.hpp>
#include <heddle/schedule/pass/group.hpp>

namespace heddle::inline v0::schedule {

HEDDLE_INLINE Orders group(const Orders& orders, int size) {
  expects(size >= 1, [&] {
    return ErrorInfo{"heddle::schedule::group", "a group needs at least one microbatch",
                     text("size = ", size)};
  });
  heddle::impl::refuse_shares(orders, "heddle::schedule::group");
  if (size == 1) return orders;
  Orders result{text(orders.name, " in groups of ", size), {}, orders.graph, orders.vertical_sync};
  const auto nth = [size](Order order, int n) {
    order.item = Item{static_cast<int>(+order.item) * size + n};
    return order;
  };
  for (const auto& rank : orders.ranks) {
    auto& list = result.ranks.emplace_back();
    list.reserve(rank.size() * static_cast<std::size_t>(size));
    for (std::size_t i = 0; i < rank.size(); ++i) {
      const bool pair = rank[i].fused && i + 1 < rank.size();
      for (int n = rank[i].kind == Kind::update ? size - 1 : 0; n < size; ++n) {
        list.push_back(nth(rank[i], n));
        if (pair) list.push_back(nth(rank[i + 1], n));
      }
      i += pair;
    }
  }
  return result;
}

}  // namespace heddle::inline v0::schedule
