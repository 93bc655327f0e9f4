// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// CapGuard: decides which forwards a cap allows without a dead end.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

#include <heddle/core/linkage.hpp>
#include <heddle/plan/impl/list_problem.hpp>
#include <heddle/plan/solver/list_options.hpp>
#include <heddle/schedule/order/orders.hpp>

namespace heddle::inline v0::plan::impl {

/// Counts the activations of every rank, and allows a forward only if all microbatches that have
/// begun can still be finished, one after another, within the cap (Dijkstra's banker's algorithm).
/// If the cap is too small for one microbatch alone, a forward only has to fit.
class CapGuard {
 public:
  /// Constructs a guard. It counts nothing if there is no cap or if there are no backwards.
  template <class Time>
  CapGuard(const ListProblem<Time>& problem, const ListOptions& options)
      : m_cap(problem.trains ? options.cap : 0),
        m_activations(options.activations),
        m_stages(problem.stages),
        m_room(problem.ranks, m_cap),
        m_refused(problem.ranks * problem.stages, 0) {
    for (const auto& node : problem.nodes) {
      if (node.moves || node.order.kind != Kind::forward) continue;
      const std::size_t item = +node.order.item;
      if (m_items.size() <= item) m_items.resize(item + 1);
      share(item, node.queue).wanted += keeps(node.order);
    }
    m_looks_ahead = std::ranges::all_of(m_items, [&](const Microbatch& item) {
      return std::ranges::all_of(item, [&](const Share& each) { return each.wanted <= m_cap; });
    });
  }

  /// Returns the activations that a rank keeps.
  [[nodiscard]] std::int64_t live(std::size_t rank) const { return m_cap - m_room[rank]; }

  /// Returns true if `rank` may begin this forward now.
  [[nodiscard]] bool allows(std::uint32_t rank, const Order& forward);

  /// Counts an order that has begun.
  void take(std::uint32_t rank, const Order& order);

 private:
  /// The activations of a microbatch on a rank.
  struct Share {
    std::uint32_t rank = 0;
    std::int64_t wanted = 0;  ///< activations of forwards that have not begun
    std::int64_t held = 0;    ///< activations of forwards that have begun, until their backward
  };
  using Microbatch = std::vector<Share>;

  [[nodiscard]] std::int64_t keeps(const Order& order) const;
  Share& share(std::size_t item, std::uint32_t rank);
  void shift(std::uint32_t rank, const Order& forward, std::int64_t activations);

  static bool can_finish(const Microbatch& item, const std::vector<std::int64_t>& room);
  /// Returns true if all begun microbatches can be finished; each finished one gives its room to
  /// the others.
  [[nodiscard]] bool all_can_finish() const;

  std::int64_t m_cap;
  const std::vector<std::int64_t>& m_activations;
  std::size_t m_stages;
  std::vector<std::int64_t> m_room;  ///< free activations of each rank
  std::vector<Microbatch> m_items;
  std::vector<std::size_t> m_begun;  ///< items that have begun and are not finished, in that order
  bool m_looks_ahead = false;
  std::uint64_t m_changes = 1;
  std::vector<std::uint64_t> m_refused;  ///< m_changes when a new item was, by rank and stage
};

}  // namespace heddle::inline v0::plan::impl

#if HEDDLE_DEFINES_PLAN
#include <heddle/plan/impl/cap_guard.ipp>
#endif
