// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// Definitions of why_not_torch.hpp.

#include <algorithm>
#include <string>
#include <unordered_map>
#include <vector>

#include <heddle/core/linkage.hpp>
#include <heddle/core/text.hpp>
#include <heddle/schedule/order/internal/progress.hpp>
#include <heddle/schedule/order/orders.hpp>
#include <heddle/schedule/order/why_not_torch.hpp>

namespace heddle::inline v0::schedule {

HEDDLE_INLINE std::string why_not_torch(const Orders& orders) {
  std::unordered_map<std::size_t, std::size_t> home;
  for (std::size_t rank = 0; rank < orders.ranks.size(); ++rank)
    for (const Order& order : orders.ranks[rank]) {
      if (order.kind == Kind::update)
        return text("it is asynchronous: torch has no action for ", order, " on rank ", rank);
      const std::size_t other = home.try_emplace(+order.stage, rank).first->second;
      if (other != rank)
        return text("stage ", order.stage, " has two copies, on ranks ", other, " and ", rank);
    }
  if (!heddle::impl::trains(orders)) return "it has no backward passes";
  const auto chain = [&](const StageGraph::Edge& edge) {
    return edge.at == Kind::forward && +edge.to == +edge.from + 1;
  };
  const auto& edges = orders.graph.edges;
  if (const auto other = std::ranges::find_if_not(edges, chain); other != edges.end())
    return text("stage ", other->to, " uses the output of stage ", other->from,
                ", but the stages of torch are a chain");
  if (orders.graph.stages > 0 && edges.size() + 1 != static_cast<std::size_t>(orders.graph.stages))
    return "its stages are not a chain";
  return {};
}

}  // namespace heddle::inline v0::schedule
