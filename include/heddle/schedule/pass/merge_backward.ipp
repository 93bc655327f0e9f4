// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// Definitions of merge_backward.hpp.

#include <utility>
#include <vector>

#include <heddle/core/linkage.hpp>
#include <heddle/schedule/pass/merge_backward.hpp>

namespace heddle::inline v0::schedule {

HEDDLE_INLINE Orders merge_backward(Orders orders) {
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
