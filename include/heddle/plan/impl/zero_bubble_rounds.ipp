// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// Definitions of zero_bubble_rounds.hpp.

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <heddle/core/index.hpp>
#include <heddle/core/linkage.hpp>
#include <heddle/plan/impl/split_items.hpp>
#include <heddle/plan/impl/zero_bubble_rounds.hpp>
#include <heddle/schedule/order/orders.hpp>
#include <heddle/schedule/pass/fill_idle_with_weights.hpp>

namespace heddle::inline v0::plan::impl {

/// One run of the heuristic.
class Rounds {
 public:
  Rounds(const Orders& orders, const schedule::FillOptions& options, const RoundSwitches& switches)
      : m_options(options), m_switches(switches), m_ranks(orders.ranks.size()) {
    for (const Order& order : orders.ranks.front())
      if (order.kind == Kind::forward) m_items.push_back(order.item);
    for (Lane& rank : m_ranks)
      for (auto& ends : rank.ends) ends.reserve(m_items.size());
  }

  /// Returns false if a rank has no room for a forward.
  bool run() {
    if (!warm_up()) return false;
    for (std::size_t round = 1; round < m_items.size(); ++round)
      if (!forwards() || !inputs(round)) return false;
    for (std::size_t rank = 0; rank < m_ranks.size(); ++rank)
      while (m_ranks[rank].done(weight) < m_items.size())
        if (!put(rank, weight)) return false;
    return true;
  }

  std::vector<std::vector<Order>> lists() {
    std::vector<std::vector<Order>> result;
    for (Lane& rank : m_ranks) result.push_back(std::move(rank.list));
    return result;
  }

 private:
  enum Phase : std::size_t { forward, input, weight };

  struct Lane {
    std::array<std::vector<double>, 3> ends;  ///< of every computation so far, by phases
    std::vector<Order> list;
    double end = 0;
    double idle = 0;  ///< after the first forward
    std::int64_t kept = 0;

    [[nodiscard]] std::size_t done(std::size_t phase) const { return ends[phase].size(); }
  };

  [[nodiscard]] Order order(std::size_t rank, Phase phase, std::size_t item) const {
    constexpr std::array kinds = {Kind::forward, Kind::backward_input, Kind::backward_weight};
    return {kinds[phase], Stage{rank}, m_items[item]};
  }
  [[nodiscard]] double price(std::size_t rank, Phase phase, std::size_t item) const {
    return m_options.price(order(rank, phase, item));
  }
  [[nodiscard]] std::int64_t keeps(std::size_t rank) const {
    return m_options.activations.empty() ? 1 : m_options.activations[rank];
  }
  [[nodiscard]] bool has_room(std::size_t rank, std::int64_t kept) const {
    return m_options.cap == 0 || kept + keeps(rank) <= m_options.cap;
  }
  [[nodiscard]] bool owes_weight(std::size_t rank) const {
    return m_ranks[rank].done(weight) < m_ranks[rank].done(input);
  }
  /// Returns the idle time that a rank may have until it is the one that idles most.
  [[nodiscard]] double slack(std::size_t rank) const {
    double most = 0;
    for (const Lane& each : m_ranks) most = std::max(most, each.idle);
    return most - m_ranks[rank].idle;
  }

  /// Returns when the next computation of a phase has what comes from another rank, or nothing if
  /// that is not yet placed.
  [[nodiscard]] std::optional<double> arrival(std::size_t rank, Phase phase) const {
    const std::size_t item = m_ranks[rank].done(phase);
    const std::size_t last = m_ranks.size() - 1;
    if (phase == weight || (phase == forward && rank == 0) || (phase == input && rank == last))
      return 0;
    const auto& ends = m_ranks[phase == forward ? rank - 1 : rank + 1].ends[phase];
    if (item >= ends.size()) return std::nullopt;
    return ends[item] + m_options.transfer;
  }

  bool put(std::size_t rank, Phase phase) {
    Lane& lane = m_ranks[rank];
    const std::size_t item = lane.done(phase);
    const std::optional<double> ready = arrival(rank, phase);
    if (!ready || item >= m_items.size()) return false;
    const double start = std::max(lane.end, *ready);
    if (lane.done(forward) > 0) lane.idle += start - lane.end;
    lane.end = start + price(rank, phase, item);
    lane.ends[phase].push_back(lane.end);
    lane.list.push_back(order(rank, phase, item));
    if (phase == forward) lane.kept += keeps(rank);
    if (phase == weight) lane.kept -= keeps(rank);
    return true;
  }

  /// Places the forwards before the first I, and the first I, of every rank.
  bool warm_up() {
    const std::size_t ranks = m_ranks.size();
    for (std::size_t rank = 0; rank < ranks; ++rank)
      if (!has_room(rank, 0) || !put(rank, forward)) return false;
    std::vector<std::size_t> ahead(ranks, 0);
    double back = m_ranks.back().end + price(ranks - 1, input, 0);  // the end of the I behind
    for (std::size_t rank = ranks - 1; rank-- > 0;) {
      double end = m_ranks[rank].end;
      const double arrives = back + m_options.transfer;
      for (std::int64_t kept = m_ranks[rank].kept;
           1 + ahead[rank] < m_items.size() && has_room(rank, kept); kept += keeps(rank)) {
        const double next = end + price(rank, forward, 1 + ahead[rank]);
        if (m_switches.warm_up_may_idle ? next > arrives : end >= arrives) break;
        end = next;
        ++ahead[rank];
      }
      back = std::max(end, arrives) + price(rank, input, 0);
    }
    for (std::size_t rank = 1; rank < ranks; ++rank)
      while (ahead[rank] > 0 && ahead[rank] >= ahead[rank - 1] && 1 + ahead[rank] < m_items.size())
        --ahead[rank];
    for (std::size_t rank = 0; rank < ranks; ++rank)
      for (std::size_t i = 0; i < ahead[rank]; ++i)
        if (!put(rank, forward)) return false;
    for (std::size_t rank = ranks; rank-- > 0;)
      if (!put(rank, input)) return false;
    return true;
  }

  /// Returns whether a rank takes a forward in this round.
  [[nodiscard]] bool wants_forward(std::size_t rank) const {
    const Lane& lane = m_ranks[rank];
    if (lane.done(forward) >= m_items.size()) return false;
    if (!m_switches.waits_for_input || rank + 1 == m_ranks.size()) return true;
    const Lane& behind = m_ranks[rank + 1];
    if (lane.done(forward) < behind.done(forward) + 2) return true;
    const double next = behind.end + price(rank + 1, forward, behind.done(forward)) +
                        price(rank + 1, input, behind.done(input)) + m_options.transfer;
    if (lane.end >= next) return false;
    double end = lane.end + price(rank, forward, lane.done(forward));
    std::size_t weights = lane.done(weight);
    for (std::int64_t kept = lane.kept; !has_room(rank, kept) && weights < lane.done(input);
         kept -= keeps(rank))
      end += price(rank, weight, weights++);
    return end <= next || next - lane.end > slack(rank);
  }

  bool forwards() {
    std::vector<char> wanted;
    for (std::size_t rank = 0; rank < m_ranks.size(); ++rank) wanted.push_back(wants_forward(rank));
    for (std::size_t rank = m_ranks.size() - 1; rank-- > 0;)
      wanted[rank] = wanted[rank] && wanted[rank + 1];
    for (std::size_t rank = 0; rank < m_ranks.size(); ++rank) {
      if (!wanted[rank]) continue;
      while (!has_room(rank, m_ranks[rank].kept))
        if (!owes_weight(rank) || !put(rank, weight)) return false;
      if (!fill(rank, forward) || !put(rank, forward)) return false;
    }
    return true;
  }

  bool inputs(std::size_t round) {
    for (std::size_t rank = m_ranks.size(); rank-- > 0;) {
      if (m_ranks[rank].done(input) != round || !fill(rank, input)) return false;
      if (rank == 0 && m_ranks[0].done(forward) == m_items.size())
        while (owes_weight(0)) put(0, weight);
      if (!put(rank, input)) return false;
    }
    return true;
  }

  /// Places the W that run while the next computation of `phase` waits for another rank.
  bool fill(std::size_t rank, Phase phase) {
    const std::optional<double> ready = arrival(rank, phase);
    if (!ready) return false;
    const Lane& lane = m_ranks[rank];
    while (owes_weight(rank) && lane.end + price(rank, weight, lane.done(weight)) <= *ready)
      put(rank, weight);
    const double gap = *ready - lane.end;
    if (owes_weight(rank) && gap > 0 && (m_switches.fills_slack || gap > slack(rank)))
      put(rank, weight);
    return true;
  }

  const schedule::FillOptions& m_options;
  RoundSwitches m_switches;
  std::vector<Lane> m_ranks;
  std::vector<Item> m_items;
};

HEDDLE_INLINE std::string RoundSwitches::describe() const {
  std::string words = "rounds";
  if (warm_up_may_idle) words += ", short warm-up";
  if (waits_for_input) words += ", I first";
  if (fills_slack) words += ", W in slack";
  return words;
}

HEDDLE_INLINE bool fits_rounds(const Orders& orders) {
  return !split_items(orders, orders.ranks.size(), [](std::size_t stage) { return stage; }).empty();
}

HEDDLE_INLINE std::optional<Orders> zero_bubble_rounds(const Orders& orders,
                                                       const schedule::FillOptions& options,
                                                       const RoundSwitches& switches) {
  Rounds rounds(orders, options, switches);
  if (!rounds.run()) return std::nullopt;
  Orders result = orders;
  result.ranks = rounds.lists();
  return result;
}

}  // namespace heddle::inline v0::plan::impl
