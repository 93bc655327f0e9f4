// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// Definitions of split_backward.hpp.

#include <utility>
#include <vector>

#include <heddle/core/linkage.hpp>
#include <heddle/schedule/pass/split_backward.hpp>

namespace heddle::inline v0::schedule {

HEDDLE_INLINE Orders split_backward(Orders orders) {
  for (auto& list : orders.ranks) {
    std::vector<Order> split;
    split.reserve(2 * list.size());
    std::vector<Order> weights;  // the W of the present pair
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
