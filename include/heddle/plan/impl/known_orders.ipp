// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// Definitions of known_orders.hpp.

#include <algorithm>
#include <cstddef>
#include <functional>
#include <set>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include <heddle/core/error.hpp>
#include <heddle/core/linkage.hpp>
#include <heddle/core/text.hpp>
#include <heddle/plan/impl/known_orders.hpp>
#include <heddle/schedule/action.hpp>
#include <heddle/schedule/generator/catalogue.hpp>
#include <heddle/schedule/order/orders.hpp>
#include <heddle/schedule/pass/split_backward.hpp>

namespace heddle::inline v0::plan::impl {

/// Returns the computations of every rank in one fixed order.
inline std::vector<std::vector<Order>> work_of(const Orders& orders) {
  std::vector<std::vector<Order>> lists = orders.ranks;
  for (auto& list : lists)
    std::ranges::sort(list, {}, [](const Order& each) {
      return std::tuple(each.kind, each.stage, each.item, each.fused);
    });
  return lists;
}

HEDDLE_INLINE Orders merged(Orders orders) {
  for (auto& list : orders.ranks) {
    std::erase_if(list, [](const Order& each) { return each.kind == Kind::backward_weight; });
    for (Order& each : list)
      if (each.kind == Kind::backward_input) each.kind = Kind::backward;
  }
  return orders;
}

HEDDLE_INLINE void for_each_known_order(
    const Orders& orders, const std::function<void(const Orders&, const std::string&)>& consider) {
  const std::size_t ranks = orders.ranks.size();
  if (ranks == 0 || orders.graph.stages < 1) return;
  const auto work = work_of(orders);
  std::size_t items = 0;
  bool split = false;
  for (const auto& list : work)
    for (const Order& order : list) {
      items = std::max(items, +order.item + 1);
      split = split || order.kind == Kind::backward_input;
    }
  // A step has at least one entry of each microbatch.
  if (items == 0 || items > work[0].size()) return;
  const int each = orders.graph.stages / static_cast<int>(ranks);
  const auto offer = [&](const schedule::NamedSchedule& entry, const schedule::PipelineShape& shape,
                         const std::string& name) {
    Orders candidate;
    try {
      candidate = entry.orders(shape);
      if (candidate.graph != orders.graph) return;
      candidate =
          split ? schedule::split_backward(std::move(candidate)) : merged(std::move(candidate));
    } catch (const error&) {
      return;  // there is no such schedule of this shape
    }
    if (work_of(candidate) != work) return;
    candidate.name = orders.name;
    consider(candidate, name);
  };
  for (const schedule::NamedSchedule& entry : schedule::catalogue()) {
    if (!entry.synchronous || entry.branches) continue;
    schedule::PipelineShape shape{.ranks = static_cast<int>(ranks),
                                  .microbatches = static_cast<int>(items),
                                  .stages_per_rank = std::max(1, each)};
    if (!entry.uses(schedule::ShapeOption::group)) {
      offer(entry, shape, std::string(entry.name));
      continue;
    }
    for (const int group : std::set<int>{2, (shape.ranks + 1) / 2, shape.ranks}) {
      shape.group = group;
      offer(entry, shape, text(entry.name, ", groups of ", group));
    }
  }
}

}  // namespace heddle::inline v0::plan::impl
