// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// Implements to_csv() with transfers: places them as torch.distributed.pipelining does.

#include <span>
#include <string>
#include <vector>

#include <heddle/core/text.hpp>
#include <heddle/schedule/order/internal/progress.hpp>
#include <heddle/schedule/order/lowered_orders.hpp>
#include <heddle/schedule/order/orders.hpp>

namespace heddle::inline v0::schedule::impl {

/// The writer. The orders and steps must have no fault.
class CsvWriter {
 public:
  explicit CsvWriter(const LoweredOrders& lowered)
      : m_orders(lowered.orders),
        m_steps(lowered.steps),
        m_graph(heddle::impl::graph_of(m_orders)),
        m_items(heddle::impl::items_of(m_orders)),
        m_homes(static_cast<std::size_t>(m_graph.stages) * m_items),
        m_edges(static_cast<std::size_t>(m_graph.stages)),
        m_lines(m_orders.ranks.size()) {
    m_steps.resize(m_lines.size());
    for (std::size_t rank = 0; rank < m_lines.size(); ++rank)
      for (const Order& order : m_orders.ranks[rank])
        if (order.kind == Kind::forward) m_homes[at(order.stage, order.item)] = Rank{rank};
    for (const auto& [from, to, edge_at] : m_graph.edges) {
      m_edges[+from].out.push_back(to);
      if (edge_at == Kind::forward) m_edges[+to].in.push_back(from);
    }
  }

  /// Returns the file.
  std::string write() && {
    const auto compute = [this](Rank rank, std::span<const Order> together) {
      append(rank, together.size() == 1 ? text(together[0])
                                        : text("(", together[0], ";", together[1], ")OVERLAP_F_B"));
      for (const Order& order : together) send(rank, order);
    };
    std::vector<std::size_t> done(m_lines.size());
    const auto step = [&](Rank rank, std::size_t head) {
      const auto& steps = m_steps[+rank];
      std::size_t& next = done[+rank];
      if (next == steps.size() || steps[next].before > head) return false;
      append(rank, text(steps[next++]));
      return true;
    };
    heddle::impl::Progress(m_orders, m_graph).run(compute, step);
    std::string csv;
    for (const std::string& line : m_lines) csv += line + "\n";
    return csv;
  }

 private:
  struct Edges {
    std::vector<Stage> in;   ///< the stages that get its gradients
    std::vector<Stage> out;  ///< the stages that get its output
  };

  [[nodiscard]] std::size_t at(Stage stage, Item item) const { return +stage * m_items + +item; }

  void append(Rank rank, const std::string& cell) {
    std::string& line = m_lines[+rank];
    line += line.empty() ? cell : "," + cell;
  }

  /// Appends the transfers of the result of `order` to the ranks that need it.
  void send(Rank rank, const Order& order) {
    if (order.kind == Kind::backward_weight || order.kind == Kind::update) return;
    const bool forward = order.kind == Kind::forward;
    const char* payload = forward ? "_F" : "_B";
    for (const Stage to : forward ? m_edges[+order.stage].out : m_edges[+order.stage].in) {
      const Rank there = m_homes[at(to, order.item)];
      if (there == rank) continue;
      append(rank, text(order.stage, "SEND", payload, order.item));
      append(there, text(to, "RECV", payload, order.item));
    }
  }

  const Orders& m_orders;
  std::vector<std::vector<ParameterStep>> m_steps;  ///< by rank
  StageGraph m_graph;
  std::size_t m_items;
  std::vector<Rank> m_homes;  ///< the ranks, by stage and microbatch
  std::vector<Edges> m_edges;
  std::vector<std::string> m_lines;
};

}  // namespace heddle::inline v0::schedule::impl
