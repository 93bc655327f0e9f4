// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// blocked_order: the error of functions that put Orders together, with or without a cap, and reach
/// a point at which no rank can continue.

#include <string>

#include <heddle/core/error.hpp>
#include <heddle/core/linkage.hpp>
#include <heddle/schedule/order/fault.hpp>
#include <heddle/schedule/order/orders.hpp>

namespace heddle::inline v0 {

/// The error that no rank can continue. It holds the first blocked order and the orders around it,
/// to print beside the error. A cap or a missing predecessor blocks an order; fault() says which.
class blocked_order : public infeasible {
 public:
  /// Constructs the error from a fault in an entry of `orders`. The message names the rank and the
  /// cell of the entry; cells are counted from 1.
  blocked_order(std::string where, Fault fault, std::string fix, Orders orders);

  /// Returns the blocked entry and the reason.
  [[nodiscard]] const Fault& fault() const noexcept { return m_fault; }
  /// Returns the orders around the entry in a line per rank. Cells are numbered from 1, and the
  /// entry stands between arrows.
  [[nodiscard]] std::string grid() const;

 private:
  Fault m_fault;
  Orders m_orders;
};

}  // namespace heddle::inline v0

#if HEDDLE_DEFINES_SCHEDULE
#include <heddle/schedule/order/blocked_order.ipp>
#endif
