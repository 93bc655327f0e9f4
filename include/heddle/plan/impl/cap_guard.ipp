// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// Definitions of cap_guard.hpp.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

#include <heddle/core/linkage.hpp>
#include <heddle/plan/impl/cap_guard.hpp>
#include <heddle/plan/impl/list_problem.hpp>
#include <heddle/plan/solver/list_options.hpp>
#include <heddle/schedule/order/orders.hpp>

namespace heddle::inline v0::plan::impl {

HEDDLE_INLINE bool CapGuard::allows(std::uint32_t rank, const Order& forward) {
  if (m_cap == 0) return true;
  if (keeps(forward) > m_room[rank]) return false;
  const std::size_t item = +forward.item;
  // If it can be finished at once, the others can be finished as if it had not begun.
  if (!m_looks_ahead || can_finish(m_items[item], m_room)) return true;
  const bool begun = std::ranges::find(m_begun, item) != m_begun.end();
  std::uint64_t& refused = m_refused[rank * m_stages + +forward.stage];
  if (!begun && refused == m_changes) return false;  // as the one before it was
  shift(rank, forward, keeps(forward));
  if (!begun) m_begun.push_back(item);
  const bool safe = all_can_finish();
  if (!begun) m_begun.pop_back();
  shift(rank, forward, -keeps(forward));
  if (!safe && !begun) refused = m_changes;
  return safe;
}

HEDDLE_INLINE void CapGuard::take(std::uint32_t rank, const Order& order) {
  if (m_cap == 0 || order.kind == Kind::backward_input) return;
  ++m_changes;
  const std::size_t item = +order.item;
  if (order.kind == Kind::forward) {
    if (std::ranges::find(m_begun, item) == m_begun.end()) m_begun.push_back(item);
    shift(rank, order, keeps(order));
    return;
  }
  m_room[rank] += keeps(order);
  share(item, rank).held -= keeps(order);
  if (std::ranges::all_of(m_items[item],
                          [](const Share& each) { return each.wanted + each.held == 0; }))
    std::erase(m_begun, item);
}

HEDDLE_INLINE std::int64_t CapGuard::keeps(const Order& order) const {
  return m_activations.empty() ? 1 : m_activations[+order.stage];
}

HEDDLE_INLINE CapGuard::Share& CapGuard::share(std::size_t item, std::uint32_t rank) {
  Microbatch& shares = m_items[item];
  const auto at = std::ranges::find(shares, rank, &Share::rank);
  return at != shares.end() ? *at : shares.emplace_back(Share{rank});
}

HEDDLE_INLINE void CapGuard::shift(std::uint32_t rank, const Order& forward,
                                   std::int64_t activations) {
  Share& one = share(+forward.item, rank);
  one.wanted -= activations;
  one.held += activations;
  m_room[rank] -= activations;
}

HEDDLE_INLINE bool CapGuard::can_finish(const Microbatch& item,
                                        const std::vector<std::int64_t>& room) {
  return std::ranges::all_of(item,
                             [&](const Share& each) { return each.wanted <= room[each.rank]; });
}

HEDDLE_INLINE bool CapGuard::all_can_finish() const {
  std::vector<std::int64_t> left = m_room;
  std::vector<std::size_t> pending = m_begun;
  const auto finish = [&](std::size_t item) {
    if (!can_finish(m_items[item], left)) return false;
    for (const Share& each : m_items[item]) left[each.rank] += each.held;
    return true;
  };
  while (std::erase_if(pending, finish) > 0) {
  }
  return pending.empty();
}

}  // namespace heddle::inline v0::plan::impl
