// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// merge_backward(): the two halves of a backward in one, where nothing comes between them. An
/// action fewer, and the order that torch's lowering starts from.

#include <utility>
#include <vector>

#include <heddle/schedule/order/orders.hpp>

namespace heddle::inline v0::schedule {

/// Every I that its own W follows as B; an I that is the last of a fused pair stays fused as B.
/// Others stay apart.
[[nodiscard]] inline Orders merge_backward(Orders orders) {
  for (auto& list : orders.ranks) {
    std::vector<Order> merged;
    merged.reserve(list.size());
    for (const Order& order : list) {
      const bool joins = !merged.empty() && !order.fused && order.kind == Kind::backward_weight &&
                         merged.back() == Order{Kind::backward_input, order.stage, order.item};
      if (joins)
        merged.back().kind = Kind::backward;
      else
        merged.push_back(order);
    }
    list = std::move(merged);
  }
  return orders;
}

}  // namespace heddle::inline v0::schedule
