// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// Progress: the ranks of some Orders take turns, each doing the head of its list when what that
/// waits for is done. Times and storage play no part.

#include <algorithm>
#include <cstdint>
#include <optional>
#include <vector>

#include <heddle/schedule/orders.hpp>
#include <heddle/schedule/stage_graph.hpp>

namespace heddle::inline v0::impl {

/// Whether the orders have any backward pass.
[[nodiscard]] inline bool trains(const Orders& orders) {
  return std::any_of(orders.ranks.begin(), orders.ranks.end(), [](const auto& list) {
    return std::any_of(list.begin(), list.end(),
                       [](const Order& order) { return order.kind != Kind::F; });
  });
}

/// The graph that the orders are meant for, a chain where they do not say; without backward passes
/// nobody reads what only those would, so that the edges which end there are gone.
[[nodiscard]] inline StageGraph graph_of(const Orders& orders) {
  if (orders.graph.stages != 0) {
    StageGraph graph = orders.graph;
    if (!trains(orders))
      std::erase_if(graph.edges, [](const StageGraph::Edge& edge) { return edge.at == Kind::B; });
    return graph;
  }
  int stages = 1;
  for (const auto& list : orders.ranks)
    for (const Order& order : list) stages = std::max(stages, static_cast<int>(+order.stage) + 1);
  return StageGraph::chain(stages);
}

/// One more than the highest microbatch.
[[nodiscard]] inline std::size_t items_of(const Orders& orders) {
  std::size_t items = 0;
  for (const auto& list : orders.ranks)
    for (const Order& order : list) items = std::max(items, +order.item + 1);
  return items;
}

/// What a stage waits for: the stages whose forward its forward or backward needs, and whose
/// backward its backward does.
struct StageInputs {
  std::vector<Stage> forward, exchanged, backward;
};

/// The inputs of every stage of a graph whose edges lead from stages to stages.
[[nodiscard]] inline std::vector<StageInputs> inputs_of(const StageGraph& graph) {
  std::vector<StageInputs> inputs(static_cast<std::size_t>(graph.stages));
  for (const StageGraph::Edge& edge : graph.edges) {
    if (edge.at == Kind::F) {
      inputs[+edge.to].forward.push_back(edge.from);
      inputs[+edge.from].backward.push_back(edge.to);
    } else {
      inputs[+edge.to].exchanged.push_back(edge.from);
    }
  }
  return inputs;
}

/// For orders in which every stage of the graph computes every microbatch.
class Progress {
 public:
  Progress(const Orders& orders, const StageGraph& graph)
      : m_orders(orders),
        m_items(items_of(orders)),
        m_before(inputs_of(graph)),
        m_forward(m_before.size() * m_items),
        m_backward(m_before.size() * m_items),
        m_heads(orders.ranks.size(), 0) {}

  /// Sweeps over the ranks until none can do its head; in a sweep each does one, or a fused pair.
  /// Calls `done(rank, order)` for each; true where all lists were done to their ends.
  template <class Done>
  bool run(Done&& done) {
    for (bool any = true; any;) {
      any = false;
      for (std::size_t rank = 0; rank < m_heads.size(); ++rank) {
        const auto& list = m_orders.ranks[rank];
        std::size_t& head = m_heads[rank];
        if (head == list.size() || waits_for(rank)) continue;
        const std::size_t together = list[head].fused && head + 1 < list.size() ? 2 : 1;
        for (std::size_t i = 0; i < together; ++i) note(list[head + i]);
        for (std::size_t i = 0; i < together; ++i) done(Rank{rank}, list[head + i]);
        head += together;
        any = true;
      }
    }
    for (std::size_t rank = 0; rank < m_heads.size(); ++rank)
      if (m_heads[rank] < m_orders.ranks[rank].size()) return false;
    return true;
  }

  /// How far every rank has come.
  [[nodiscard]] const std::vector<std::size_t>& heads() const noexcept { return m_heads; }

  /// What the head of `rank`, or the partner it is fused with, waits for first.
  [[nodiscard]] std::optional<Order> waits_for(std::size_t rank) const {
    const auto& list = m_orders.ranks[rank];
    const std::size_t head = m_heads[rank];
    auto found = missing(list[head]);
    if (!found && list[head].fused && head + 1 < list.size()) found = missing(list[head + 1]);
    return found;
  }

 private:
  [[nodiscard]] std::size_t at(Stage stage, Item item) const { return +stage * m_items + +item; }

  [[nodiscard]] std::optional<Order> missing(const Order& order) const {
    const StageInputs& before = m_before[+order.stage];
    const auto forward = [&](Stage stage) { return m_forward[at(stage, order.item)]; };
    const auto backward = [&](Stage stage) { return m_backward[at(stage, order.item)]; };
    switch (order.kind) {
      case Kind::F:
        for (const Stage from : before.forward)
          if (!forward(from)) return Order{Kind::F, from, order.item};
        break;
      case Kind::I:
      case Kind::B:
        if (!forward(order.stage)) return Order{Kind::F, order.stage, order.item};
        for (const Stage from : before.exchanged)
          if (!forward(from)) return Order{Kind::F, from, order.item};
        for (const Stage to : before.backward)
          if (!backward(to)) return Order{Kind::B, to, order.item};
        break;
      case Kind::W:
        if (!backward(order.stage)) return Order{Kind::I, order.stage, order.item};
        break;
      default: break;
    }
    return {};
  }

  void note(const Order& order) {
    if (order.kind == Kind::F) m_forward[at(order.stage, order.item)] = true;
    if (order.kind == Kind::I || order.kind == Kind::B)
      m_backward[at(order.stage, order.item)] = true;
  }

  const Orders& m_orders;
  std::size_t m_items;
  std::vector<StageInputs> m_before;
  std::vector<bool> m_forward;
  std::vector<bool> m_backward;  ///< I or B
  std::vector<std::size_t> m_heads;
};

}  // namespace heddle::inline v0::impl
