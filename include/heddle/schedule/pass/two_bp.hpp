// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// two_bp(): 2BP, backward in two stages. Any orders with the gradients of the weights computed
/// where a rank would idle, and the rest of them at the end.

#include <heddle/schedule/order/orders.hpp>
#include <heddle/schedule/pass/fill_idle_with_weights.hpp>
#include <heddle/schedule/pass/split_backward.hpp>

namespace heddle::inline v0::schedule {

/// split_backward(), then fill_idle_with_weights() (Rae et al., "2BP: 2-Stage Backpropagation",
/// 2024). A stage's input and the gradient of its output live on until their W: memory grows.
///
/// With F = I = W on N ranks and no limit on memory, a step is shorter than with B = I + W by
/// 3N / (2N + 1) for one microbatch, 3(2N - 1) / (5N - 2) for GPipe of N, 3(2N - 1) / (4N - 1) for
/// 1F1B of N and 3(3N - 1) / (7N - 1) for 1F1B of 2N: less than 1 + W / (F + I) = 1.5.
///
/// @throws infeasible, contract_error as fill_idle_with_weights() does.
[[nodiscard]] inline Orders two_bp(const Orders& orders, const FillOptions& options = {}) {
  Orders result = fill_idle_with_weights(split_backward(orders), options);
  result.name = orders.name + " with 2BP";
  return result;
}

}  // namespace heddle::inline v0::schedule
