// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// AllNanoPlans: the best of all plans of nano-batches, the reference of their search.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <map>
#include <vector>

#include <heddle/schedule/timeline.hpp>
#include <heddle/simulate/simulate.hpp>
#include <heddle/systems/nanoflow/nano_batches.hpp>

namespace heddle::test {

/// The makespan of the best plan of a chain of operations in one division, or `known` if none is
/// better: every order that keeps the pieces of an operation in the order of the batch, and all
/// units. Plans are left out if a queue or the chain of a piece ends no earlier than the best, with
/// no waits for units, and with all units for the pieces that have none yet.
class AllNanoPlans {
 public:
  AllNanoPlans(const systems::NanoLayer& layer, const std::vector<std::int64_t>& division,
               const std::vector<std::vector<int>>& units, Seconds known)
      : best(known), m_layer(layer), m_costs(layer), m_division(division), m_units(units) {
    m_plan = systems::serial_nano_plan(layer, division);
    m_plan.order.clear();
    m_done.assign(layer.operations.size(), 0);
    m_queues.resize(layer.performance.size());
    m_chains.resize(division.size());
    for (std::uint32_t o = 0; o < m_done.size(); ++o)
      for (std::uint32_t p = 0; p < division.size(); ++p) {
        m_queues[layer.operations[o].resource].left += alone(o, p);
        m_chains[p].left += alone(o, p);
      }
    add_orders();
    for (const auto& [queues, order] : m_orders) {
      m_plan.order = order;
      choose_units(0);
    }
  }

  Seconds best;
  std::size_t simulated = 0;

 private:
  /// What is known of a queue or a chain.
  struct Work {
    Seconds end = 0;   ///< of the pieces that have units
    Seconds left = 0;  ///< the time of the others with all units
  };

  /// Finds all orders. Those with the same order in each queue are the same plan.
  void add_orders() {
    bool complete = true;
    for (std::uint32_t o = 0; o < m_done.size(); ++o) {
      complete = complete && m_done[o] == m_division.size();
      if (m_done[o] == m_division.size() || (o > 0 && m_done[o - 1] <= m_done[o])) continue;
      m_plan.order.push_back({o, m_done[o]++});
      add_orders();
      m_plan.order.pop_back();
      --m_done[o];
    }
    if (!complete) return;
    std::vector<std::vector<std::uint32_t>> queues(m_queues.size());
    for (const systems::NanoPiece& piece : m_plan.order)
      queues[m_layer.operations[piece.operation].resource].push_back(piece.operation);
    m_orders.emplace(queues, m_plan.order);
  }

  /// Tries all units for the `i`-th piece and those behind it.
  void choose_units(std::size_t i) {
    if (i == m_plan.order.size()) {
      ++simulated;
      simulate(systems::nano_schedule(m_layer, m_plan), m_costs, m_timeline);
      best = std::min(best, m_timeline.makespan());
      return;
    }
    systems::NanoPiece& piece = m_plan.order[i];
    const std::uint32_t resource = m_layer.operations[piece.operation].resource;
    const Seconds whole = alone(piece.operation, piece.piece);
    Work& queue = m_queues[resource];
    Work& chain = m_chains[piece.piece];
    const Work before[] = {queue, chain};
    for (const int units : m_units[resource]) {
      piece.units = static_cast<std::uint16_t>(units);
      queue.end = chain.end = std::max(before[0].end, before[1].end) +
                              whole / m_layer.performance[resource][piece.units - 1u];
      queue.left = before[0].left - whole;
      chain.left = before[1].left - whole;
      if (queue.end + queue.left < best && chain.end + chain.left < best) choose_units(i + 1);
      queue = before[0];
      chain = before[1];
    }
  }

  /// The time of a piece with all units.
  [[nodiscard]] Seconds alone(std::uint32_t o, std::uint32_t p) const {
    return m_layer.operations[o].batch * static_cast<double>(m_division[p]) /
               static_cast<double>(m_layer.samples) +
           m_layer.operations[o].piece;
  }

  const systems::NanoLayer& m_layer;
  systems::InterferenceCosts m_costs;
  const std::vector<std::int64_t>& m_division;
  const std::vector<std::vector<int>>& m_units;
  systems::NanoPlan m_plan;
  /// The orders, by the operations of each queue.
  std::map<std::vector<std::vector<std::uint32_t>>, std::vector<systems::NanoPiece>> m_orders;
  std::vector<std::uint32_t> m_done;
  std::vector<Work> m_queues;  ///< by resource
  std::vector<Work> m_chains;  ///< by piece
  Timeline m_timeline;
};

}  // namespace heddle::test
