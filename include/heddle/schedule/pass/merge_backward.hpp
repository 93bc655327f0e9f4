// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// merge_backward(): joins the two halves of a backward if no other order stands between them. The
/// result has fewer actions, and torch's lowering starts from such orders.

#include <heddle/core/linkage.hpp>
#include <heddle/schedule/order/orders.hpp>

namespace heddle::inline v0::schedule {

/// Returns `orders` with a B for every I that is followed by its own W. If the I is the last of a
/// fused pair, the B stays fused. All other I and W stay separate.
[[nodiscard]] Orders merge_backward(Orders orders);

}  // namespace heddle::inline v0::schedule

#if HEDDLE_DEFINES_SCHEDULE_PASS
#include <heddle/schedule/pass/merge_backward.ipp>
#endif
