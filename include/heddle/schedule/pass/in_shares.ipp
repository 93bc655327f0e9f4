// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// Definitions of in_shares.hpp.

#include <algorithm>
#include <cstddef>
#include <string>
#include <utility>
#include <vector>

#include <heddle/core/contract.hpp>
#include <heddle/core/linkage.hpp>
#include <heddle/core/text.hpp>
#include <heddle/schedule/order/internal/divided_orders.hpp>
#include <heddle/schedule/pass/in_shares.hpp>

namespace heddle::inline v0::schedule {

HEDDLE_INLINE Orders in_shares(Orders orders, StageShares shares) {
  constexpr const char* where = "heddle::schedule::in_shares";
  heddle::impl::refuse_shares(orders, where);
  shares.check();
  if (shares.empty()) return orders;
  const auto is_one = [](const std::vector<std::int64_t>& each) { return each.size() == 1; };
  expects(!orders.graph.replicas || std::ranges::all_of(shares.stages, is_one), [&] {
    return ErrorInfo{where, "a stage with replicas has one share", text("'", orders.name, "'"),
                     "divide either the microbatches or their samples between the ranks"};
  });
  std::vector<std::vector<Order>> lists;
  for (std::size_t rank = 0; rank < orders.ranks.size(); ++rank) {
    const std::vector<Order>& list = orders.ranks[rank];
    const auto count = [&](const Order& order) { return shares.stages[+order.stage].size(); };
    for (const Order& order : list) {
      expects(+order.stage < shares.stages.size(), [&] {
        return ErrorInfo{where, "every stage needs its shares",
                         text(shares.stages.size(), " entries, none for ", order)};
      });
      expects(count(order) == count(list[0]), [&] {
        return ErrorInfo{where, "the stages of a rank have different numbers of shares",
                         text("rank ", rank, ": stage ", list[0].stage, " has ", count(list[0]),
                              ", stage ", order.stage, " has ", count(order)),
                         "give the stages of a rank as many shares as it becomes ranks"};
      });
    }
    lists.insert(lists.end(), list.empty() ? 1 : count(list[0]), list);
  }
  orders.ranks = std::move(lists);
  orders.shares = std::move(shares);
  return orders;
}

}  // namespace heddle::inline v0::schedule
