// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// Definitions of fuse.hpp.

#include <cstddef>
#include <map>
#include <span>
#include <utility>

#include <heddle/core/error.hpp>
#include <heddle/core/linkage.hpp>
#include <heddle/core/text.hpp>
#include <heddle/schedule/order/first_fault.hpp>
#include <heddle/schedule/order/internal/divided_orders.hpp>
#include <heddle/schedule/order/internal/progress.hpp>
#include <heddle/schedule/pass/fuse.hpp>

namespace heddle::inline v0::schedule {

namespace impl {

/// The state of one fuse() call. It first fuses all candidates. Then it lets the ranks progress,
/// and if they wait for each other, it separates a pair again.
class Fuser {
 public:
  explicit Fuser(const Orders& orders) : m_given(orders), m_orders(orders) {
    for (std::size_t rank = 0; rank < m_orders.ranks.size(); ++rank) {
      auto& list = m_orders.ranks[rank];
      for (std::size_t i = 0; i < list.size(); ++i) {
        m_rank_of[{list[i].stage, list[i].item}] = rank;
        if (list[i].fused) {
          ++i;  // the partner is on the same rank
          m_rank_of[{list[i].stage, list[i].item}] = rank;
          continue;
        }
        list[i].fused = i + 1 < list.size() && list[i].kind == Kind::forward &&
                        list[i + 1].kind == Kind::backward && !list[i + 1].fused;
      }
    }
  }

  Orders run() {
    heddle::impl::Progress progress(m_orders, heddle::impl::graph_of(m_orders));
    while (!progress.run([](Rank, std::span<const Order>) {})) take_apart(progress);
    return std::move(m_orders);
  }

 private:
  /// Separates one pair of a cycle of ranks that wait for each other. Such a pair exists: the given
  /// orders can progress, so one rank of the cycle holds back a forward that could run.
  void take_apart(const heddle::impl::Progress& progress) {
    std::size_t rank = 0;
    while (progress.heads()[rank] == m_orders.ranks[rank].size()) ++rank;
    const auto next = [&](std::size_t from) {
      const Order waits_for = progress.waits_for(from)->lacks;
      return m_rank_of.at({waits_for.stage, waits_for.item});
    };
    for (std::size_t i = 0; i < m_orders.ranks.size(); ++i) rank = next(rank);  // now in the cycle
    for (;; rank = next(rank)) {
      const std::size_t head = progress.heads()[rank];
      Order& order = m_orders.ranks[rank][head];
      if (!order.fused || m_given.ranks[rank][head].fused) continue;
      order.fused = false;
      if (!progress.waits_for(rank)) return;
      order.fused = true;
    }
  }

  const Orders& m_given;
  Orders m_orders;
  std::map<std::pair<Stage, Item>, std::size_t> m_rank_of;
};

}  // namespace impl

HEDDLE_INLINE Orders fuse(const Orders& orders) {
  heddle::impl::refuse_shares(orders, "heddle::schedule::fuse");
  if (const auto fault = first_fault(orders))
    throw infeasible({text("heddle::schedule::fuse(", orders.name, ")"), fault->what, fault->why});
  Orders fused = impl::Fuser(orders).run();
  fused.name += ", fused";
  return fused;
}

}  // namespace heddle::inline v0::schedule
