// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// Definitions of energon.hpp.

#include <cstdint>

#include <heddle/core/contract.hpp>
#include <heddle/core/linkage.hpp>
#include <heddle/core/text.hpp>
#include <heddle/schedule/fold.hpp>
#include <heddle/schedule/generator/pipeline.hpp>
#include <heddle/schedule/order/orders.hpp>
#include <heddle/schedule/order/weave.hpp>
#include <heddle/systems/energonai/energon.hpp>

namespace heddle::inline v0::systems {

HEDDLE_INLINE Schedule energon(const EnergonOptions& options) {
  expects(options.depth >= 0, [&] {
    return ErrorInfo{"heddle::systems::energon", "the depth must be at least 0",
                     text("depth = ", options.depth), "0 is a blocking send"};
  });
  Orders orders = schedule::stream(options.ranks, options.requests);
  orders.name =
      text("EnergonAI P=", options.ranks, " M=", options.requests, " depth=", options.depth);
  return schedule::fold(weave(orders, options.sizes), static_cast<std::uint32_t>(options.depth));
}

}  // namespace heddle::inline v0::systems
