// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// LoweredOrders: Orders together with the steps by which torch.distributed.pipelining handles the
/// parameters of the stages. Code that writes or reads its schedule files uses them.

#include <vector>

#include <heddle/core/linkage.hpp>
#include <heddle/schedule/order/orders.hpp>
#include <heddle/schedule/order/parameter_step.hpp>

namespace heddle::inline v0::schedule {

/// Orders, and the parameter steps of every rank. Passes of Heddle read the orders only, because
/// Heddle derives its own parameter steps.
struct LoweredOrders {
  Orders orders;  ///< the actions of every rank
  /// The parameter steps of each rank, in the order in which they run. If there are no lists, no
  /// rank has steps.
  std::vector<std::vector<ParameterStep>> steps = {};

  friend bool operator==(const LoweredOrders&, const LoweredOrders&) = default;
};

/// Returns `orders` with the parameter steps that torch.distributed.pipelining adds to a file
/// without them. A rank unshards the next three stages that it computes and reshards all others. It
/// reduces the gradients of a stage directly after the last B or W of that stage. With a fused pair
/// a fourth stage can be unsharded. Stages that are resharded at the same place are in ascending
/// order.
/// Source: _add_unshard_reshard and _add_reduce_grad in torch/distributed/pipelining/schedules.py.
[[nodiscard]] LoweredOrders lower(Orders orders);

}  // namespace heddle::inline v0::schedule

#if HEDDLE_DEFINES_SCHEDULE
#include <heddle/schedule/order/lowered_orders.ipp>
#endif
