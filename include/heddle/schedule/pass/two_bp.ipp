// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// Definitions of two_bp.hpp.

#include <heddle/core/linkage.hpp>
#include <heddle/schedule/pass/split_backward.hpp>
#include <heddle/schedule/pass/two_bp.hpp>

namespace heddle::inline v0::schedule {

HEDDLE_INLINE Orders two_bp(const Orders& orders, const FillOptions& options) {
  Orders result = fill_idle_with_weights(split_backward(orders), options);
  result.name = orders.name + " with 2BP";
  return result;
}

}  // namespace heddle::inline v0::schedule
