// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// Definitions of blocked_order.hpp.

#include <string>
#include <utility>

#include <heddle/core/linkage.hpp>
#include <heddle/core/text.hpp>
#include <heddle/schedule/order/blocked_order.hpp>
#include <heddle/schedule/order/fault.hpp>
#include <heddle/schedule/order/first_fault.hpp>
#include <heddle/schedule/order/orders.hpp>

namespace heddle::inline v0 {

HEDDLE_INLINE blocked_order::blocked_order(std::string where, Fault fault, std::string fix,
                                           Orders orders)
    : infeasible({std::move(where), fault.what,
                  text("rank ", fault.rank, ", cell ", fault.entry + 1, ": '",
                       orders.ranks[+fault.rank][fault.entry], "', ", fault.why),
                  std::move(fix)}),
      m_fault(std::move(fault)),
      m_orders(std::move(orders)) {}

HEDDLE_INLINE std::string blocked_order::grid() const { return to_grid(m_orders, m_fault); }

}  // namespace heddle::inline v0
