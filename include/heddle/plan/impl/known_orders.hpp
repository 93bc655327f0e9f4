// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// for_each_known_order(): the schedules of the catalogue that have given computations.

#include <functional>
#include <string>

#include <heddle/core/linkage.hpp>
#include <heddle/schedule/order/orders.hpp>

namespace heddle::inline v0::plan::impl {

/// Returns orders whose backwards are whole: an I becomes the whole backward, and its W goes.
[[nodiscard]] Orders merged(Orders orders);

/// Calls `consider(orders, name)` with every schedule of the catalogue whose ranks have the
/// computations of `orders`. Its backwards are split, or merged into the I, as those of `orders`
/// are. The results have the name and the graph of `orders`.
void for_each_known_order(const Orders& orders,
                          const std::function<void(const Orders&, const std::string&)>& consider);

}  // namespace heddle::inline v0::plan::impl

#if HEDDLE_DEFINES_PLAN
#include <heddle/plan/impl/known_orders.ipp>
#endif
