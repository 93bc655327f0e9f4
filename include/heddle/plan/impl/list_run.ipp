// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// Definitions of list_run.hpp.

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include <heddle/core/index.hpp>
#include <heddle/core/linkage.hpp>
#include <heddle/core/text.hpp>
#include <heddle/plan/impl/list_run.hpp>
#include <heddle/schedule/order/blocked_order.hpp>
#include <heddle/schedule/order/fault.hpp>
#include <heddle/schedule/order/orders.hpp>

namespace heddle::inline v0::plan::impl {

HEDDLE_INLINE void refuse_dead_end(const std::string& where, std::int64_t cap,
                                   const std::vector<HeldBack>& held,
                                   std::vector<std::vector<Order>> lists) {
  Fault first;
  first.what = text("a dead end under the cap of ", cap, " activations");
  for (const HeldBack& each : held) {
    if (first.why.empty()) {
      first.rank = Rank{each.rank};
      first.entry = lists[each.rank].size();
      lists[each.rank].push_back(each.order);
    }
    first.why += text(first.why.empty() ? "" : ", ", "rank ", each.rank, " keeps ", each.live,
                      " and has no room for ", each.order);
  }
  throw blocked_order(where, std::move(first), "raise the cap, or take another priority",
                      {{}, std::move(lists)});
}

}  // namespace heddle::inline v0::plan::impl
