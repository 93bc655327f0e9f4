// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// fill_idle_with_weights(): moves every W to a gap of its rank, because only the update waits for
/// a W. For orders with a split backward; see split_backward().

#include <cstdint>
#include <functional>
#include <vector>

#include <heddle/core/linkage.hpp>
#include <heddle/schedule/order/orders.hpp>

namespace heddle::inline v0::schedule {

namespace impl {

/// Returns the default price of an order: 1 for F, I and W, 2 for B.
[[nodiscard]] double unit_price(const Order& order);

}  // namespace impl

/// Options of fill_idle_with_weights(). All times have the same unit, which may be any unit.
struct FillOptions {
  std::int64_t cap = 0;  ///< the most live activations of a rank; 0: no limit
  /// The time of an order; by default 1 for F, I and W, and 2 for B.
  std::function<double(const Order&)> price = impl::unit_price;
  double share = 1;     ///< the least share of a W that a gap must hold. Below 1 a W may delay the
                        ///< next order, but less W remain for the end. 0: every gap is used
  double transfer = 0;  ///< time from the end of an order until another rank has its result
  std::vector<std::int64_t> activations = {};  ///< activations that a forward of each stage keeps;
                                               ///< empty: 1 each
};

/// Returns `orders` with every W moved to a gap of its rank, the oldest W first. A gap is idle time
/// that is at least as long as the W, or as the share of it that `options` states. If a forward
/// would exceed the cap, W run before it. The remaining W run at the end. The other orders of each
/// rank stay in order. Without a cap the step is the shortest and keeps the most activations.
///
/// Idle time is computed by a simulation with the prices of `options`. In it every result takes
/// `transfer` to another rank, without contention, and a fused pair takes as long as both of its
/// halves.
///
/// @throws blocked_order, an infeasible, if no rank can continue under the cap, or if the orders
///         cannot progress without it. The error names the blocked heads, and its grid marks the
///         first head that is held back.
/// @throws contract_error if a rank does not have one W per I, if a W is fused, if the orders
///         contain updates, if the cap is negative or the share is not between 0 and 1, if
///         `activations` is not one number of at least 0 per stage, and if a price or the transfer
///         is negative, infinite or not a number.
[[nodiscard]] Orders fill_idle_with_weights(const Orders& orders, const FillOptions& options = {});

}  // namespace heddle::inline v0::schedule

#if HEDDLE_DEFINES_SCHEDULE_PASS
#include <heddle/schedule/pass/fill_idle_with_weights.ipp>
#endif
