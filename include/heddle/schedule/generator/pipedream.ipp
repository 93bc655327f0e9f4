// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// Definitions of pipedream.hpp.

#include <utility>
#include <vector>

#include <heddle/core/linkage.hpp>
#include <heddle/core/text.hpp>
#include <heddle/schedule/generator/pipedream.hpp>
#include <heddle/schedule/generator/pipeline.hpp>
#include <heddle/schedule/order/weave.hpp>

namespace heddle::inline v0::schedule {

HEDDLE_INLINE Orders pipedream(int ranks, int microbatches, bool vertical_sync) {
  Orders orders = one_f_one_b(ranks, microbatches);
  orders.name =
      text("PipeDream P=", ranks, " M=", microbatches, vertical_sync ? ", vertical sync" : "");
  orders.vertical_sync = vertical_sync;
  for (auto& list : orders.ranks) {
    std::vector<Order> updated;
    updated.reserve(list.size() + list.size() / 2);
    for (const Order& order : list) {
      updated.push_back(order);
      if (order.kind == Kind::backward) updated.push_back({Kind::update, order.stage, order.item});
    }
    list = std::move(updated);
  }
  return orders;
}

HEDDLE_INLINE Schedule pipedream(const PipeDreamOptions& options) {
  return weave(pipedream(options.ranks, options.microbatches, options.vertical_sync),
               options.sizes);
}

}  // namespace heddle::inline v0::schedule
