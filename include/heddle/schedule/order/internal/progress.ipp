// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// Definitions of progress.hpp.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include <heddle/core/contract.hpp>
#include <heddle/core/linkage.hpp>
#include <heddle/core/text.hpp>
#include <heddle/schedule/order/internal/divided_orders.hpp>
#include <heddle/schedule/order/internal/progress.hpp>
#include <heddle/schedule/order/orders.hpp>
#include <heddle/schedule/order/stage_graph.hpp>

namespace heddle::inline v0::impl {

HEDDLE_INLINE bool trains(const Orders& orders) {
  return std::any_of(orders.ranks.begin(), orders.ranks.end(), [](const auto& list) {
    return std::any_of(list.begin(), list.end(),
                       [](const Order& order) { return order.kind != Kind::forward; });
  });
}

// Checks that the orders have enough entries for their highest stage and microbatch, before arrays
// of that size are allocated. Small numbers pass: the errors for missing entries say more.
inline void expect_numbers(const Orders& orders) {
  constexpr std::size_t small = 1u << 16;
  const auto where = [&] { return text("heddle::Orders '", orders.name, "'"); };
  std::size_t entries = 0;
  for (const auto& list : orders.ranks) entries += list.size();
  const std::size_t most = std::max(entries, small);
  expects(orders.graph.stages >= 0 && static_cast<std::size_t>(orders.graph.stages) <= most, [&] {
    return ErrorInfo{
        where(), "the stage graph does not fit the orders",
        text("graph.stages = ", orders.graph.stages, ", there are ", entries, " entries"),
        "use 0 for a chain over the stages of the orders"};
  });
  for (std::size_t rank = 0; rank < orders.ranks.size(); ++rank)
    for (std::size_t i = 0; i < orders.ranks[rank].size(); ++i) {
      const Order& order = orders.ranks[rank][i];
      expects(+order.stage < most && +order.item < most, [&] {
        return ErrorInfo{where(), "there is no such stage or microbatch",
                         text("entry ", i, " of rank ", rank, " is ", order, ", there are ",
                              entries, " entries"),
                         "every stage computes every microbatch"};
      });
    }
}

HEDDLE_INLINE StageGraph graph_of(const Orders& orders) {
  expect_numbers(orders);
  if (orders.graph.stages != 0) {
    StageGraph graph = orders.graph;
    if (!trains(orders))
      std::erase_if(graph.edges,
                    [](const StageGraph::Edge& edge) { return edge.at == Kind::backward; });
    return graph;
  }
  int stages = 1;
  for (const auto& list : orders.ranks)
    for (const Order& order : list) stages = std::max(stages, static_cast<int>(+order.stage) + 1);
  return StageGraph::chain(stages);
}

HEDDLE_INLINE std::size_t items_of(const Orders& orders) {
  expect_numbers(orders);
  std::size_t items = 0;
  for (const auto& list : orders.ranks)
    for (const Order& order : list) items = std::max(items, +order.item + 1);
  return items;
}

HEDDLE_INLINE std::vector<StageInputs> inputs_of(const StageGraph& graph) {
  std::vector<StageInputs> inputs(static_cast<std::size_t>(graph.stages));
  for (const StageGraph::Edge& edge : graph.edges) {
    if (edge.at == Kind::forward) {
      inputs[+edge.to].forward.push_back(edge.from);
      inputs[+edge.from].backward.push_back(edge.to);
    } else {
      inputs[+edge.to].exchanged.push_back(edge.from);
    }
  }
  return inputs;
}

HEDDLE_INLINE Progress::Progress(const Orders& orders, const StageGraph& graph, Sight sight)
    : m_orders(orders),
      m_behind(sight == Sight::next_sweep),
      m_items(items_of(orders)),
      m_before(inputs_of(graph)),
      m_sweeps(m_before.size() * m_items),
      m_heads(orders.ranks.size(), 0),
      m_next_waiter(orders.ranks.size(), 0),
      m_awaited(orders.ranks.size(), nullptr),
      m_turns((orders.ranks.size() + 63) / 64, 0),
      m_next_turns(m_turns) {}

HEDDLE_INLINE std::size_t Progress::begin() {
  std::size_t open = 0;
  for (std::size_t rank = 0; rank < m_heads.size(); ++rank) {
    // The orders may have changed since the last run, so nobody waits.
    std::uint32_t*& awaited = m_awaited[rank];
    if (awaited != nullptr && *awaited >= waiter) *awaited = 0;
    awaited = nullptr;
    set(m_next_turns, rank);
    open += m_heads[rank] < m_orders.ranks[rank].size();
  }
  return open;
}

HEDDLE_INLINE bool Progress::begin_sweep() {
  m_turns.swap(m_next_turns);
  m_seen = ++m_sweep - m_behind;
  return std::ranges::any_of(m_turns, [](std::uint64_t turns) { return turns != 0; });
}

HEDDLE_INLINE std::optional<Progress::Wait> Progress::waits_for(std::size_t rank) const {
  auto lacks = missing_at(rank);
  if (!lacks) return {};
  if (lacks->kind == Kind::backward && splits(lacks->stage)) lacks->kind = Kind::backward_input;
  const std::size_t head = m_heads[rank];
  return Wait{missing(m_orders.ranks[rank][head]) ? head : head + 1, *lacks};
}

HEDDLE_INLINE std::string Progress::stuck(const DividedOrders& names) const {
  std::string heads;
  for (std::size_t rank = 0; rank < m_heads.size(); ++rank) {
    const auto& list = m_orders.ranks[rank];
    if (m_heads[rank] == list.size()) continue;
    const Wait wait = *waits_for(rank);
    heads += text(heads.empty() ? "" : ", ", "rank ", rank, " waits at ",
                  names.describe(list[wait.entry]), " for ", names.describe(wait.lacks));
  }
  return heads;
}

HEDDLE_INLINE bool Progress::splits(Stage stage) const {
  for (const auto& list : m_orders.ranks)
    for (const Order& order : list)
      if (order.kind == Kind::backward_input && order.stage == stage) return true;
  return false;
}

}  // namespace heddle::inline v0::impl
