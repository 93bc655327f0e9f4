// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// LoweredOrders: Orders, and what torch.distributed.pipelining does with the parameters of the
/// stages between them. For those who write its schedule files or read them.

#include <cstddef>
#include <cstdint>
#include <ostream>
#include <vector>

#include <heddle/core/index.hpp>
#include <heddle/schedule/order/impl/parameter_steps.hpp>
#include <heddle/schedule/order/orders.hpp>
#include <heddle/schedule/order/parameter_step.hpp>

namespace heddle::inline v0::schedule {

/// Orders, and the parameter steps of every rank. Passes of Heddle read the orders alone: Heddle
/// derives what it does with parameters itself.
struct LoweredOrders {
  Orders orders;  ///< what is computed
  /// A list for each rank, in the order in which the steps are done. No lists: no rank has steps.
  std::vector<std::vector<ParameterStep>> steps = {};

  friend bool operator==(const LoweredOrders&, const LoweredOrders&) = default;
};

/// Adds the parameter steps that torch.distributed.pipelining adds to a file without them: a rank
/// unshards the next three stages that it computes, reshards those that are not among them, and
/// reduces the gradients of a stage right after the last B or W of that stage. A fused pair may
/// bring a fourth stage. Stages that are resharded at one place are in ascending order.
/// Source: _add_unshard_reshard and _add_reduce_grad in torch/distributed/pipelining/schedules.py.
[[nodiscard]] inline LoweredOrders lower(Orders orders) {
  LoweredOrders lowered{std::move(orders), {}};
  for (const auto& list : lowered.orders.ranks)
    lowered.steps.push_back(impl::parameter_steps(list));
  return lowered;
}

}  // namespace heddle::inline v0::schedule
