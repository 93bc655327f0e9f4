// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// ShareCosts: prices the passes of a stage by the samples that its rank computes, for Schedules
/// whose orders have StageShares.

#include <algorithm>
#include <concepts>
#include <cstddef>
#include <utility>
#include <vector>

#include <heddle/core/contract.hpp>
#include <heddle/core/text.hpp>
#include <heddle/schedule/order/orders.hpp>
#include <heddle/schedule/order/stage_shares.hpp>
#include <heddle/schedule/schedule.hpp>
#include <heddle/simulate/costs.hpp>

namespace heddle::inline v0 {

/// Costs in proportion to samples. F, I, W and B cost the share of the `whole` microbatch that the
/// rank computes. All other actions cost the same as with `whole`; moves are priced by their bytes.
template <Costs C>
class ShareCosts {
 public:
  using Time = typename C::Time;  ///< the type of costs

  /// Constructs the costs of schedules that are woven from `orders`. `whole` prices the passes of
  /// `orders.shares.samples` samples. Without shares, all costs are those of `whole`.
  ShareCosts(C whole, const Orders& orders) : m_whole(std::move(whole)), m_shares(orders.shares) {
    m_ranks.resize(m_shares.stages.size());
    for (std::size_t rank = 0; rank < orders.ranks.size(); ++rank)
      for (const Order& order : orders.ranks[rank]) {
        if (+order.stage >= m_ranks.size()) continue;
        std::vector<Rank>& ranks = m_ranks[+order.stage];
        if (ranks.empty() || ranks.back() != Rank{rank}) ranks.push_back(Rank{rank});
      }
  }

  /// Checks all costs. @throws contract_error as `whole` does.
  void check() const requires CheckedCosts<C> { m_whole.check(); }
  /// Returns the Machine whose links price the moves.
  [[nodiscard]] const Machine& machine() const noexcept requires SharingCosts<C> {
    return m_whole.machine();
  }
  /// Returns the cost of an action that is not a move.
  /// @throws contract_error if the orders do not have its stage on its rank.
  [[nodiscard]] Time time(const Schedule& schedule, ActionId id) const {
    return share(schedule, id, m_whole.time(schedule, id));
  }
  /// Returns the cost of a fused pair. Both actions must have the same part of a microbatch.
  [[nodiscard]] Time fused(const Schedule& schedule, ActionId id) const requires FusedCosts<C> {
    return share(schedule, id, m_whole.fused(schedule, id));
  }
  /// Returns the cost of a move.
  [[nodiscard]] Transfer<Time> transfer(const Schedule& schedule, ActionId id) const {
    return m_whole.transfer(schedule, id);
  }
  /// Returns the time for which a move keeps a shared resource.
  [[nodiscard]] Time occupancy(const Schedule& schedule, ActionId id,
                               const Shared& shared) const requires SharingCosts<C> {
    return m_whole.occupancy(schedule, id, shared);
  }

 private:
  [[nodiscard]] Time share(const Schedule& schedule, ActionId id, Time whole) const {
    const Action& action = schedule[id];
    if (action.kind > Kind::backward || m_shares.empty()) return whole;
    const Rank rank = schedule[action.queue].from;
    const bool known = +action.stage < m_ranks.size();
    std::size_t k = 0;  // a stage with replicas has one share
    if (known && m_shares.stages[+action.stage].size() > 1)
      k = static_cast<std::size_t>(std::ranges::find(m_ranks[+action.stage], rank) -
                                   m_ranks[+action.stage].begin());
    expects(known && k < m_shares.stages[+action.stage].size(), [&] {
      return ErrorInfo{
          "heddle::ShareCosts", "the orders do not have a stage on this rank",
          text("stage ", action.stage, " on rank ", rank, " of '", schedule.name(), "'"),
          "give the orders from which the schedule is woven"};
    });
    const int samples = m_shares.range(action.stage, k, m_shares.samples_of(action.item)).size();
    return whole * static_cast<Time>(samples) / static_cast<Time>(m_shares.samples);
  }

  C m_whole;
  StageShares m_shares;
  std::vector<std::vector<Rank>> m_ranks;  ///< by stage: the ranks that hold it, ascending
};

}  // namespace heddle::inline v0
