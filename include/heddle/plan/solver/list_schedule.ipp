// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// Definitions of list_schedule.hpp.

#include <heddle/core/linkage.hpp>
#include <heddle/plan/solver/list_options.hpp>
#include <heddle/plan/solver/list_schedule.hpp>
#include <heddle/schedule/order/orders.hpp>
#include <heddle/simulate/costs.hpp>

namespace heddle::inline v0::plan {

HEDDLE_INLINE Orders list_schedule(const Orders& orders, const StageCosts& costs,
                                   const ListOptions& options, const StageSizes& sizes) {
  return list_schedule<StageCosts>(orders, costs, options, sizes);
}

}  // namespace heddle::inline v0::plan
