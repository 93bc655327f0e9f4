// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// why_not_torch(): says why torch.distributed.pipelining cannot run some Orders.

#include <string>

#include <heddle/core/linkage.hpp>
#include <heddle/schedule/order/orders.hpp>

namespace heddle::inline v0::schedule {

/// Returns the reason why torch.distributed.pipelining rejects a file of these orders, or computes
/// something else from it. Returns an empty string if torch runs them. It supports no updates
/// between microbatches (asynchronous schedules), no second copy of a stage, no step without
/// backward passes, and no graph of stages except a chain.
/// Source: _validate_schedule, _Action.from_str and _add_send_recv in
/// torch/distributed/pipelining/schedules.py.
[[nodiscard]] std::string why_not_torch(const Orders& orders);

}  // namespace heddle::inline v0::schedule

#if HEDDLE_DEFINES_SCHEDULE
#include <heddle/schedule/order/why_not_torch.ipp>
#endif
