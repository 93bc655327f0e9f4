// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// Definitions of live_activations.hpp.

#include <algorithm>
#include <cstdint>
#include <vector>

#include <heddle/core/contract.hpp>
#include <heddle/core/linkage.hpp>
#include <heddle/core/text.hpp>
#include <heddle/schedule/order/live_activations.hpp>
#include <heddle/schedule/order/orders.hpp>

namespace heddle::inline v0::schedule {

HEDDLE_INLINE std::vector<std::int64_t> live_activations(
    const Orders& orders, const std::vector<std::int64_t>& activations) {
  std::vector<std::int64_t> most;
  for (const auto& list : orders.ranks) {
    std::int64_t live = 0;
    std::int64_t peak = 0;
    for (const Order& order : list) {
      expects(activations.empty() || +order.stage < activations.size(), [&] {
        return ErrorInfo{"heddle::schedule::live_activations",
                         "every stage needs a number of kept activations",
                         text(activations.size(), " numbers, none for ", order)};
      });
      const std::int64_t each = activations.empty() ? 1 : activations[+order.stage];
      if (order.kind == Kind::forward) live += each;
      peak = std::max(peak, live);
      if (order.kind == Kind::backward || order.kind == Kind::backward_weight) live -= each;
    }
    const bool trains = std::any_of(list.begin(), list.end(),
                                    [](const Order& order) { return order.kind != Kind::forward; });
    most.push_back(trains ? peak : 0);
  }
  return most;
}

}  // namespace heddle::inline v0::schedule
