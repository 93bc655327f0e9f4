// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// try_v_shapes(): the published orders of a chain that is folded to a V.

#include <cstddef>
#include <string>
#include <utility>
#include <vector>

#include <heddle/plan/impl/split_items.hpp>
#include <heddle/schedule/generator/internal/v_table.hpp>
#include <heddle/schedule/generator/v_shape.hpp>
#include <heddle/schedule/order/orders.hpp>

namespace heddle::inline v0::plan::impl {

/// Calls `consider(orders, rule)` with ZB-V, V-half and V-min of the work of `orders`, and with the
/// passages of the latter two, repeated from the first to the last microbatch. If F, I and W are
/// unequal, a repeated passage may be shorter than its squeezed form. There are no candidates
/// unless rank r of P ranks has the stages r and 2P - 1 - r of a chain, with one F, I and W of each
/// microbatch.
template <class Consider>
void try_v_shapes(const Orders& orders, const Consider& consider) {
  const std::size_t ranks = orders.ranks.size();
  const auto rank_of = [ranks](std::size_t stage) {
    return stage < ranks ? stage : 2 * ranks - 1 - stage;
  };
  const std::size_t items = split_items(orders, 2 * ranks, rank_of).size();
  if (items == 0) return;
  const auto offer = [&](std::vector<std::vector<Order>> lists, const std::string& rule) {
    Orders candidate = orders;
    candidate.ranks = std::move(lists);
    consider(candidate, rule);
  };
  const auto p = static_cast<int>(ranks);
  const auto m = static_cast<int>(items);
  offer(schedule::zb_v_orders(p, m).ranks, "ZB-V");
  offer(schedule::v_half_orders(p, m).ranks, "V-half");
  offer(schedule::v_min_orders(p, m).ranks, "V-min");
  const auto repeat = [&](const schedule::impl::VPassage& passage, const std::string& rule) {
    offer(schedule::impl::VTable(ranks, items, passage).lists(), rule);
  };
  repeat(schedule::impl::v_half_passage(ranks), "V-half repeated");
  repeat(schedule::impl::v_min_passage(ranks), "V-min repeated");
}

}  // namespace heddle::inline v0::plan::impl
