// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// AllOrders: every linear order of a OperationGraph, cut in every balanced way.

#include <algorithm>
#include <cstddef>
#include <limits>
#include <vector>

#include <heddle/systems/rhino/stage_cut.hpp>

namespace heddle::test {

/// Cuts every linear order of a graph in every balanced way.
class AllOrders {
 public:
  AllOrders(const systems::OperationGraph& graph, int stages, double tolerance)
      : m_graph(graph), m_stages(stages), m_place(graph.work.size()), m_placed(graph.work.size()) {
    double total = 0;
    for (const double work : graph.work) total += work;
    m_most = (1 + tolerance) * total / stages * (1 + 1e-12);
    extend(0, 0, 0);
  }
  /// The fewest bytes of a cut order.
  double least = std::numeric_limits<double>::infinity();
  /// The cut orders.
  std::size_t cuts = 0;

 private:
  // Puts one more vertex behind `count` others, into stage `stage`, which has `work`.
  void extend(std::size_t count, int stage, double work) {
    if (count == m_place.size()) {
      ++cuts;
      least = std::min(least, m_graph.bytes(m_place));
      return;
    }
    for (std::size_t v = 0; v < m_place.size(); ++v) {
      if (m_placed[v]) continue;
      bool ready = true;
      for (const systems::OperationGraph::Order& order : m_graph.orders)
        if (order.last == v && !m_placed[order.first]) ready = false;
      if (!ready) continue;
      m_placed[v] = true;
      for (int s = stage; s < m_stages; ++s) {
        const double sum = (s == stage ? work : 0) + m_graph.work[v];
        if (sum > m_most) continue;
        m_place[v] = s;
        extend(count + 1, s, sum);
      }
      m_placed[v] = false;
    }
  }
  const systems::OperationGraph& m_graph;
  int m_stages;
  double m_most = 0;
  std::vector<int> m_place;
  std::vector<bool> m_placed;
};

}  // namespace heddle::test
