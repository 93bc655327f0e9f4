// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// ListClock: the makespan of orders, without a Schedule. A search uses it to drop candidates that
/// are longer than its best.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include <heddle/plan/impl/list_problem.hpp>
#include <heddle/schedule/order/orders.hpp>

namespace heddle::inline v0::plan::impl {

/// Computes makespans of orders with the computations of a ListProblem. A result is never longer
/// than that of simulate(), which may also wait for slots and updates.
template <class Time>
class ListClock {
 public:
  explicit ListClock(const ListProblem<Time>& problem) : m_problem(problem) {
    std::size_t items = 0;
    for (const auto& node : problem.nodes)
      if (!node.moves) items = std::max(items, +node.order.item + 1);
    m_items = items;
    m_numbers.assign(problem.stages * items * 4, 0);
    for (std::uint32_t n = 0; n < problem.nodes.size(); ++n)
      if (!problem.nodes[n].moves) m_numbers[index(problem.nodes[n].order)] = n;
  }

  /// Returns the number of the node of an order.
  [[nodiscard]] std::uint32_t node(const Order& order) const { return m_numbers[index(order)]; }

  /// Returns the makespan of the orders, which must be the computations of the problem, or nothing
  /// if they cannot progress.
  [[nodiscard]] std::optional<Time> makespan(const Orders& orders) {
    const std::size_t ranks = orders.ranks.size();
    m_missing.clear();
    for (const auto& each : m_problem.nodes) m_missing.push_back(each.inputs);
    m_ready.assign(m_problem.nodes.size(), Time{});
    m_channels.assign(m_problem.channels, Time{});
    m_heads.assign(ranks, 0);
    std::vector<Time> free(ranks, Time{});
    m_waiting.clear();
    for (std::size_t r = ranks; r-- > 0;) m_waiting.push_back(r);
    Time last{};
    std::size_t done = 0;
    while (!m_waiting.empty()) {
      const std::size_t r = m_waiting.back();
      m_waiting.pop_back();
      for (const auto& list = orders.ranks[r]; m_heads[r] < list.size(); ++m_heads[r], ++done) {
        const std::uint32_t n = node(list[m_heads[r]]);
        if (m_missing[n] > 0) break;
        free[r] = std::max(free[r], m_ready[n]) + m_problem.nodes[n].takes;
        arrive(orders, n, free[r]);
      }
      last = std::max(last, free[r]);
    }
    if (done < m_problem.orders) return std::nullopt;
    return last;
  }

 private:
  [[nodiscard]] std::size_t index(const Order& order) const {
    return (+order.stage * m_items + +order.item) * 4 + static_cast<std::size_t>(order.kind);
  }

  /// Tells the successors of a node that it ended.
  void arrive(const Orders& orders, std::uint32_t number, const Time& end) {
    for (std::uint32_t e = m_problem.first[number]; e < m_problem.first[number + 1]; ++e) {
      const std::uint32_t next = m_problem.next[e];
      m_ready[next] = std::max(m_ready[next], end);
      if (--m_missing[next] > 0) continue;
      const auto& node = m_problem.nodes[next];
      if (node.moves) {
        Time& free = m_channels[node.queue];
        free = std::max(free, m_ready[next]) + node.takes;
        arrive(orders, next, free + node.latency);
        continue;
      }
      const auto& list = orders.ranks[node.queue];
      const std::size_t head = m_heads[node.queue];
      if (head < list.size() && list[head] == node.order) m_waiting.push_back(node.queue);
    }
  }

  const ListProblem<Time>& m_problem;
  std::size_t m_items = 0;
  std::vector<std::uint32_t> m_numbers;  ///< the node of an order, by index()
  std::vector<std::uint32_t> m_missing;  ///< missing inputs, by node
  std::vector<Time> m_ready;             ///< when the inputs of a node have arrived
  std::vector<Time> m_channels;          ///< when each channel is free
  std::vector<std::size_t> m_heads;      ///< the next entry of each rank
  std::vector<std::size_t> m_waiting;    ///< ranks whose next entry may start
};

}  // namespace heddle::inline v0::plan::impl
