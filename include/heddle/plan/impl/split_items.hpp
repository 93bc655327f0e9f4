// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// split_items(): the microbatches of a chain with a split backward.

#include <algorithm>
#include <array>
#include <cstddef>
#include <vector>

#include <heddle/core/index.hpp>
#include <heddle/schedule/action.hpp>
#include <heddle/schedule/order/orders.hpp>
#include <heddle/schedule/order/stage_graph.hpp>

namespace heddle::inline v0::plan::impl {

/// Returns the microbatches of `orders`, in ascending order, if the stages form a chain of `stages`
/// stages, stage s is on rank `rank_of(s)`, and every stage has one F, I and W of each microbatch
/// and nothing else. Returns an empty list otherwise.
template <class RankOf>
[[nodiscard]] std::vector<Item> split_items(const Orders& orders, std::size_t stages,
                                            const RankOf& rank_of) {
  if (stages == 0 || orders.graph != StageGraph::chain(static_cast<int>(stages))) return {};
  std::vector<std::array<std::vector<Item>, 3>> found(stages);
  for (std::size_t rank = 0; rank < orders.ranks.size(); ++rank)
    for (const Order& order : orders.ranks[rank]) {
      if (+order.stage >= stages || rank_of(+order.stage) != rank || order.fused) return {};
      switch (order.kind) {
        case Kind::forward: found[+order.stage][0].push_back(order.item); break;
        case Kind::backward_input: found[+order.stage][1].push_back(order.item); break;
        case Kind::backward_weight: found[+order.stage][2].push_back(order.item); break;
        default: return {};
      }
    }
  for (auto& stage : found)
    for (auto& items : stage) std::ranges::sort(items);
  for (const auto& stage : found)
    for (const auto& items : stage)
      if (items != found[0][0]) return {};
  return found[0][0];
}

}  // namespace heddle::inline v0::plan::impl
