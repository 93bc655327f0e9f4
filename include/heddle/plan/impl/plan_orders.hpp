// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// plan_orders(): the orders of a plan's schedule before its stages are placed.

#include <cstddef>
#include <string>

#include <heddle/core/linkage.hpp>
#include <heddle/schedule/order/orders.hpp>
#include <heddle/schedule/plan.hpp>

namespace heddle::inline v0::plan::impl {

/// Returns the orders of the schedule called `name`, with stage s on rank s. `where` is the
/// caller's name, for errors.
/// @throws contract_error if the schedule has other stages.
[[nodiscard]] Orders line_orders(const std::string& name, std::size_t stages, int microbatches,
                                 const char* where);

/// Returns the orders of a plan's schedule, with stage s on rank s. `where` is the caller's name,
/// for errors.
/// @throws contract_error if the schedule has other stages.
[[nodiscard]] Orders plan_orders(const Plan& plan, const char* where);

/// Returns the orders of in_buckets(plan): those of the plan, whose rank s has all buckets of its
/// stage s.
/// @throws contract_error as plan_orders(), or if the schedule fuses passes of several buckets.
[[nodiscard]] Orders bucket_orders(const Plan& plan, const char* where);

}  // namespace heddle::inline v0::plan::impl

#if HEDDLE_DEFINES_PLAN
#include <heddle/plan/impl/plan_orders.ipp>
#endif
