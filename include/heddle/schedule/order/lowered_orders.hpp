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
///
/// `ahead` has a number of stages for each rank, from 1 to 3. A rank then unshards a stage only
/// when it is among so many next stages. Without `ahead` there are three on every rank, so several
/// gathers stand before the first forward. torch's staggered rule is min(r + 2, 3) for rank r,
/// because later ranks wait for their first input anyway. All other steps stay at their places.
/// Source of `ahead`: the change "Stagger FSDP unshards across schedule compute" of PyTorch, which
/// is under review there.
/// @throws contract_error if `ahead` has another number of ranks or a number out of range.
[[nodiscard]] LoweredOrders lower(Orders orders, const std::vector<int>& ahead = {});

}  // namespace heddle::inline v0::schedule

#if HEDDLE_DEFINES_SCHEDULE
#include <heddle/schedule/order/lowered_orders.ipp>
#endif
