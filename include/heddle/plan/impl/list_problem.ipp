// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// Definitions of list_problem.hpp.

#include <vector>

#include <heddle/core/linkage.hpp>
#include <heddle/plan/impl/list_problem.hpp>
#include <heddle/schedule/order/internal/divided_orders.hpp>
#include <heddle/schedule/order/internal/progress.hpp>
#include <heddle/schedule/order/orders.hpp>
#include <heddle/schedule/order/stage_levels.hpp>

namespace heddle::inline v0::plan::impl {

HEDDLE_INLINE std::vector<int> order_levels(const Orders& orders) {
  heddle::impl::refuse_shares(orders, "heddle::plan::coordinate");
  return heddle::impl::stage_levels(heddle::impl::graph_of(orders));
}

}  // namespace heddle::inline v0::plan::impl
