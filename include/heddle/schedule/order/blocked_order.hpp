// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// blocked_order: the error of those who put Orders together, under a cap or not, and find no way
/// on.

#include <string>
#include <utility>

#include <heddle/core/error.hpp>
#include <heddle/core/text.hpp>
#include <heddle/schedule/order/fault.hpp>
#include <heddle/schedule/order/first_fault.hpp>
#include <heddle/schedule/order/orders.hpp>

namespace heddle::inline v0 {

/// The first order that is held back, by a cap or by what must come before it, while no rank can go
/// on: fault() says by which. And its neighbourhood, to print beside the error.
class blocked_order : public infeasible {
 public:
  /// `fault` is of an entry of `orders`; a message names its rank and its cell, counted from 1.
  blocked_order(std::string where, Fault fault, std::string fix, Orders orders)
      : infeasible({std::move(where), fault.what,
                    text("rank ", fault.rank, ", cell ", fault.entry + 1, ": '",
                         orders.ranks[+fault.rank][fault.entry], "', ", fault.why),
                    std::move(fix)}),
        m_fault(std::move(fault)),
        m_orders(std::move(orders)) {}

  /// Whose entry it is, and what holds it back.
  [[nodiscard]] const Fault& fault() const noexcept { return m_fault; }
  /// The orders around it in a line per rank, cells numbered from 1, this one between arrows.
  [[nodiscard]] std::string grid() const { return to_grid(m_orders, m_fault); }

 private:
  Fault m_fault;
  Orders m_orders;
};

}  // namespace heddle::inline v0
