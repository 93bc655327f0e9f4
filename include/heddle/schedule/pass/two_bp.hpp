// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// two_bp(): 2BP, a backward pass in two stages. A rank computes the gradients of the weights when
/// it would otherwise be idle, and the remaining ones at the end. It works for any orders.

#include <heddle/core/linkage.hpp>
#include <heddle/schedule/order/orders.hpp>
#include <heddle/schedule/pass/fill_idle_with_weights.hpp>

namespace heddle::inline v0::schedule {

/// Returns the result of split_backward() and then fill_idle_with_weights() (Rae et al., "2BP:
/// 2-Stage Backpropagation", 2024). It needs more memory, because a stage's input and the gradient
/// of its output stay live until their W.
///
/// Let F = I = W on N ranks without a limit on memory. The step is then shorter than with
/// B = I + W, by these factors: 3N / (2N + 1) for one microbatch, 3(2N - 1) / (5N - 2) for GPipe
/// with N microbatches, 3(2N - 1) / (4N - 1) for 1F1B with N and 3(3N - 1) / (7N - 1) for 1F1B with
/// 2N. All factors are below 1 + W / (F + I) = 1.5.
///
/// @throws infeasible, contract_error as fill_idle_with_weights() does.
[[nodiscard]] Orders two_bp(const Orders& orders, const FillOptions& options = {});

}  // namespace heddle::inline v0::schedule

#if HEDDLE_DEFINES_SCHEDULE_PASS
#include <heddle/schedule/pass/two_bp.ipp>
#endif
