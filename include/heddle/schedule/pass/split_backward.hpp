// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// split_backward(): splits every backward into its two halves, for any orders. Zero-bubble
/// schedules start from such orders.

#include <heddle/core/linkage.hpp>
#include <heddle/schedule/order/orders.hpp>

namespace heddle::inline v0::schedule {

/// Returns `orders` with I and W, one after the other, for every B. If the B is in a fused pair, I
/// stays in the pair and W follows the pair. Existing I and W stay as they are. merge_backward() is
/// the inverse.
[[nodiscard]] Orders split_backward(Orders orders);

}  // namespace heddle::inline v0::schedule

#if HEDDLE_DEFINES_SCHEDULE_PASS
#include <heddle/schedule/pass/split_backward.ipp>
#endif
