// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// divide_stages(): puts several stages of a model in the place of each stage of some Orders.

#include <vector>

#include <heddle/core/linkage.hpp>
#include <heddle/schedule/order/orders.hpp>

namespace heddle::inline v0::schedule {

/// Returns `orders` in which stage s becomes `counts[s]` consecutive stages of the same rank, a
/// chain. Each entry becomes one entry for each of them: forwards in ascending order, backward
/// passes and updates in descending order. Stages that are numbered later move up.
///
/// The gradients of the last of these stages are then complete while the rank still computes the
/// backward passes of the others. With eager_updates() they are summed meanwhile.
///
/// @throws contract_error if a stage has no count or a count below 1, if the orders have shares, or
///         if a fused entry belongs to a stage that becomes several.
[[nodiscard]] Orders divide_stages(Orders orders, const std::vector<int>& counts);

}  // namespace heddle::inline v0::schedule

#if HEDDLE_DEFINES_SCHEDULE_PASS
#include <heddle/schedule/pass/divide_stages.ipp>
#endif
