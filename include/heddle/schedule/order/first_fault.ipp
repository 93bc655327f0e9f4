// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// Definitions of first_fault.hpp.

#include <optional>
#include <string>
#include <vector>

#include <heddle/core/linkage.hpp>
#include <heddle/core/text.hpp>
#include <heddle/schedule/order/fault.hpp>
#include <heddle/schedule/order/first_fault.hpp>
#include <heddle/schedule/order/impl/fault_finder.hpp>
#include <heddle/schedule/order/impl/marked_grid.hpp>
#include <heddle/schedule/order/internal/divided_orders.hpp>
#include <heddle/schedule/order/orders.hpp>

namespace heddle::inline v0 {

namespace schedule {

HEDDLE_INLINE std::optional<Fault> first_fault(const Orders& orders) {
  return heddle::impl::FaultFinder(heddle::impl::DividedOrders(orders)).find();
}

}  // namespace schedule

HEDDLE_INLINE std::string to_grid(const Orders& orders, const Fault& fault) {
  std::vector<std::vector<std::string>> rows;
  for (const auto& list : orders.ranks) {
    auto& row = rows.emplace_back();
    for (const Order& order : list) row.push_back(text(order));
  }
  return impl::marked_grid(rows, +fault.rank, fault.entry);
}

}  // namespace heddle::inline v0
