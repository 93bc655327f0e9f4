// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// Definitions of lowered_orders.hpp.

#include <utility>

#include <heddle/core/linkage.hpp>
#include <heddle/schedule/order/impl/parameter_steps.hpp>
#include <heddle/schedule/order/lowered_orders.hpp>
#include <heddle/schedule/order/orders.hpp>
#include <heddle/schedule/order/parameter_step.hpp>

namespace heddle::inline v0::schedule {

HEDDLE_INLINE LoweredOrders lower(Orders orders) {
  LoweredOrders lowered{std::move(orders), {}};
  for (const auto& list : lowered.orders.ranks)
    lowered.steps.push_back(impl::parameter_steps(list));
  return lowered;
}

}  // namespace heddle::inline v0::schedule
