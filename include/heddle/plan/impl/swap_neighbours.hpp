// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// swap_neighbours(): improves orders by swaps of neighbours.

#include <cstddef>
#include <utility>

#include <heddle/core/error.hpp>
#include <heddle/schedule/order/orders.hpp>

namespace heddle::inline v0::plan::impl {

/// Swaps neighbours of unequal kinds on a rank and keeps a swap if `improves(orders)` returns true.
/// It ends when no swap improves. `improves` may throw infeasible if the orders cannot progress.
template <class Improves>
void swap_neighbours(Orders& orders, const Improves& improves) {
  const auto accepted = [&] {
    try {
      return improves(orders);
    } catch (const infeasible&) {
      return false;
    }
  };
  for (bool any = true; any;) {
    any = false;
    for (auto& list : orders.ranks) {
      for (std::size_t i = 0; i + 1 < list.size(); ++i) {
        // Microbatches keep their order, so neighbours of one kind need not be tried.
        if (list[i].kind == list[i + 1].kind) continue;
        std::swap(list[i], list[i + 1]);
        if (accepted())
          any = true;
        else
          std::swap(list[i], list[i + 1]);
      }
    }
  }
}

}  // namespace heddle::inline v0::plan::impl
