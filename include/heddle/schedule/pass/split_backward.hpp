// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// split_backward(): every backward in its two halves. What zero-bubble schedules start from, for
/// any orders.

#include <utility>
#include <vector>

#include <heddle/schedule/order/orders.hpp>

namespace heddle::inline v0::schedule {

/// Every B as I and W, next to each other; of a pair in which it is fused it leaves I, and W comes
/// after the pair. Orders that are split already stay as they are. merge_backward() takes it back.
[[nodiscard]] inline Orders split_backward(Orders orders) {
  for (auto& list : orders.ranks) {
    std::vector<Order> split;
    split.reserve(2 * list.size());
    std::vector<Order> weights;  // of the pair that is open
    for (Order order : list) {
      if (order.kind == Kind::backward) {
        order.kind = Kind::backward_input;
        weights.push_back({Kind::backward_weight, order.stage, order.item});
      }
      split.push_back(order);
      if (order.fused) continue;
      split.insert(split.end(), weights.begin(), weights.end());
      weights.clear();
    }
    list = std::move(split);
  }
  return orders;
}

}  // namespace heddle::inline v0::schedule
