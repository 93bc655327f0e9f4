// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// Definitions of weave.hpp.

#include <heddle/core/linkage.hpp>
#include <heddle/schedule/order/impl/weaver.hpp>
#include <heddle/schedule/order/weave.hpp>

namespace heddle::inline v0 {

HEDDLE_INLINE Schedule weave(const Orders& orders, const StageSizes& sizes) {
  return impl::Weaver(orders, sizes).run();
}

}  // namespace heddle::inline v0
