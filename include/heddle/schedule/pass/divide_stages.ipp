// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// Definitions of divide_stages.hpp.

#include <algorithm>
#include <cstddef>
#include <limits>
#include <utility>
#include <vector>

#include <heddle/core/contract.hpp>
#include <heddle/core/index.hpp>
#include <heddle/core/linkage.hpp>
#include <heddle/core/text.hpp>
#include <heddle/schedule/order/internal/divided_orders.hpp>
#include <heddle/schedule/pass/divide_stages.hpp>

namespace heddle::inline v0::schedule {

HEDDLE_INLINE Orders divide_stages(Orders orders, const std::vector<int>& counts) {
  constexpr const char* where = "heddle::schedule::divide_stages";
  heddle::impl::refuse_shares(orders, where);
  std::vector<int> first{0};  // by stage: the first of its stages, and one past the last
  for (std::size_t s = 0; s < counts.size(); ++s) {
    expects(counts[s] >= 1 && counts[s] <= std::numeric_limits<int>::max() - first.back(), [&] {
      return ErrorInfo{where, "a stage becomes at least one stage, and all fit in an int",
                       text("stage ", s, ": count ", counts[s], ", after ", first.back())};
    });
    first.push_back(first.back() + counts[s]);
  }
  for (std::vector<Order>& list : orders.ranks) {
    std::vector<Order> divided;
    for (std::size_t i = 0; i < list.size(); ++i) {
      const Order& order = list[i];
      const std::size_t s = +order.stage;
      expects(s < counts.size(), [&] {
        return ErrorInfo{where, "every stage needs a count",
                         text(counts.size(), " counts, none for ", order)};
      });
      const bool fused = order.fused || (i > 0 && list[i - 1].fused);
      expects(counts[s] == 1 || !fused, [&] {
        return ErrorInfo{where, "a fused entry belongs to one stage",
                         text(order, " of '", orders.name, "'"),
                         "use a schedule without fused entries, or a count of 1"};
      });
      for (int k = 0; k < counts[s]; ++k) {
        Order& each = divided.emplace_back(order);
        each.stage = Stage{order.kind == Kind::forward ? first[s] + k : first[s + 1] - 1 - k};
      }
    }
    list = std::move(divided);
  }
  StageGraph& graph = orders.graph;
  if (graph.stages == 0) return orders;  // a chain, as before
  expects(static_cast<std::size_t>(graph.stages) <= counts.size(), [&] {
    return ErrorInfo{where, "every stage needs a count",
                     text(counts.size(), " counts for ", graph.stages, " stages")};
  });
  for (StageGraph::Edge& edge : graph.edges) {
    expects(+edge.from < counts.size() && +edge.to < counts.size(), [&] {
      return ErrorInfo{where, "the stage graph has an edge to no stage",
                       text(edge.from, " -> ", edge.to, ", stages 0 to ", counts.size() - 1)};
    });
    edge = {Stage{first[+edge.from + 1] - 1}, Stage{first[+edge.to]}, edge.at};
  }
  for (std::size_t s = 0; s < static_cast<std::size_t>(graph.stages); ++s)
    for (int k = first[s]; k + 1 < first[s + 1]; ++k)
      graph.edges.push_back({Stage{k}, Stage{k + 1}});
  graph.stages = first[static_cast<std::size_t>(graph.stages)];
  return orders;
}

}  // namespace heddle::inline v0::schedule
