// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// Definitions of place_weights.hpp.

#include <algorithm>

#include <heddle/core/linkage.hpp>
#include <heddle/core/units.hpp>
#include <heddle/plan/place_weights.hpp>
#include <heddle/schedule/order/orders.hpp>
#include <heddle/simulate/costs.hpp>

namespace heddle::inline v0::plan {

namespace impl {

HEDDLE_INLINE bool has_weights(const Orders& orders) {
  return std::ranges::any_of(orders.ranks, [](const auto& list) {
    return std::ranges::find(list, Kind::backward_weight, &Order::kind) != list.end();
  });
}

}  // namespace impl

HEDDLE_INLINE PlacedWeights<Seconds> place_weights(const Orders& orders, const StageCosts& costs,
                                                   const StageSizes& sizes) {
  return place_weights<StageCosts>(orders, costs, sizes);
}

}  // namespace heddle::inline v0::plan
