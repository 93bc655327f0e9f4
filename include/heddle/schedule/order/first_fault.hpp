// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// first_fault(): what is wrong with Orders that weave() refuses, down to the entry, and a grid
/// that marks it. For those who write orders by hand or read them from files.

#include <optional>
#include <string>
#include <vector>

#include <heddle/core/text.hpp>
#include <heddle/schedule/order/fault.hpp>
#include <heddle/schedule/order/impl/fault_finder.hpp>
#include <heddle/schedule/order/impl/marked_grid.hpp>
#include <heddle/schedule/order/orders.hpp>

namespace heddle::inline v0 {

/// The first wrong entry of `orders`, or none. Looked for in this order: what every list shows by
/// itself (rank by rank: a stage on two ranks, an action twice, B or I before its F, W before its
/// I, a fused entry without a partner); what is missing (an F of a stage or microbatch, the
/// backward of an F, the W of an I); and the head of the first list that cannot be done to its end.
/// What it says of orders with updates is not complete: weave() also follows the versions of their
/// weights.
/// @throws contract_error for a graph with an edge to no stage, or to neither a forward nor a
///         backward pass.
[[nodiscard]] inline std::optional<Fault> first_fault(const Orders& orders) {
  return impl::FaultFinder(orders).find();
}

/// The entries around a fault in a line per rank, cells numbered from 1, the wrong one between
/// arrows.
[[nodiscard]] inline std::string to_grid(const Orders& orders, const Fault& fault) {
  std::vector<std::vector<std::string>> rows;
  for (const auto& list : orders.ranks) {
    auto& row = rows.emplace_back();
    for (const Order& order : list) row.push_back(text(order));
  }
  return impl::marked_grid(rows, +fault.rank, fault.entry);
}

}  // namespace heddle::inline v0
