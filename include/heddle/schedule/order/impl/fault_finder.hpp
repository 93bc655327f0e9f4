// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// Implements first_fault(). Time and memory depend only on the number of entries, not on the
/// stage and microbatch numbers in them.

#include <algorithm>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <tuple>
#include <unordered_map>
#include <utility>

#include <heddle/core/contract.hpp>
#include <heddle/core/text.hpp>
#include <heddle/schedule/order/fault.hpp>
#include <heddle/schedule/order/internal/divided_orders.hpp>
#include <heddle/schedule/order/internal/progress.hpp>
#include <heddle/schedule/order/orders.hpp>
#include <heddle/schedule/order/stage_graph.hpp>

namespace heddle::inline v0::impl {

/// The search for the first fault of some Orders.
class FaultFinder {
 public:
  explicit FaultFinder(const DividedOrders& divided)
      : m_divided(divided), m_orders(divided.orders()), m_graph(m_orders.graph) {
    for (const auto& list : m_orders.ranks) {
      for (const Order& order : list) {
        m_stages = std::max(m_stages, +order.stage + 1);
        m_items = std::max(m_items, +order.item + 1);
        m_trains |= order.kind != Kind::forward;
      }
    }
    if (m_graph.stages == 0) return;
    m_stages = static_cast<std::size_t>(m_graph.stages);
    for (const auto& edge : m_graph.edges) {
      expects(+edge.from < m_stages && +edge.to < m_stages, [&] {
        return ErrorInfo{"heddle::schedule::first_fault", "the stage graph has an edge to no stage",
                         text(edge.from, " -> ", edge.to, ", stages 0 to ", m_stages - 1)};
      });
      expects(edge.at == Kind::forward || edge.at == Kind::backward, [&] {
        return ErrorInfo{"heddle::schedule::first_fault",
                         "an edge must end at a forward (F) or a backward pass (B)",
                         text(edge.from, " -> ", edge.to, " at ", edge.at)};
      });
    }
  }

  /// Returns the first fault, or none.
  std::optional<Fault> find() {
    if (auto found = wrong_or_missing()) return found;
    return stuck();
  }

  /// Returns the first fault that the lists show without running them, or none.
  std::optional<Fault> wrong_or_missing() {
    if (m_items == 0) return Fault{{}, 0, "the orders contain no action", {}};
    if (auto found = in_the_lists()) return found;
    return missing();
  }

 private:
  /// The actions of the lists for one microbatch at one stage.
  struct State {
    Rank rank;
    bool forward = false, backward = false, weights = false;
    std::size_t forward_at = 0, backward_at = 0;  ///< entries of `rank`
  };
  [[nodiscard]] static std::uint64_t key(std::size_t stage, std::size_t item) {
    return std::uint64_t{stage} << 32 | item;
  }
  [[nodiscard]] const State* find(std::size_t stage, std::size_t item) const {
    const auto found = m_states.find(key(stage, item));
    return found != m_states.end() && found->second.forward ? &found->second : nullptr;
  }

  std::optional<Fault> in_the_lists() {
    for (std::size_t rank = 0; rank < m_orders.ranks.size(); ++rank)
      for (std::size_t i = 0; i < m_orders.ranks[rank].size(); ++i)
        if (auto found = entry(Rank{rank}, i)) return found;
    return {};
  }

  std::optional<Fault> entry(Rank rank, std::size_t i) {
    const auto& list = m_orders.ranks[+rank];
    const Order& order = list[i];
    const auto fault = [&](std::string what, std::string why) {
      return Fault{rank, i, std::move(what), std::move(why)};
    };
    if (order.kind > Kind::backward && order.kind != Kind::update)
      return fault("orders may contain only F, I, W, B and UPDATE", describe(order));
    if (+order.stage >= m_stages)
      return fault("an action names a stage that is not in the graph",
                   text(describe(order), ", stages 0 to ",
                        (m_divided.divides() ? m_divided.stages() : m_stages) - 1));
    if (order.fused && (i + 1 == list.size() || list[i + 1].fused || order.kind > Kind::backward ||
                        list[i + 1].kind > Kind::backward))
      return fault("a fused entry needs one partner, the entry after it", describe(order));
    const auto [home, first] = m_homes.try_emplace(+order.stage, rank);
    if (!m_graph.replicas && home->second != rank)
      return fault("a stage is on two ranks",
                   text("stage ", order.stage, " is on rank ", home->second, " already"));
    if (order.kind == Kind::update) return {};
    const auto [found, inserted] = m_states.try_emplace(key(+order.stage, +order.item));
    State& state = found->second;
    if (inserted) state.rank = rank;
    if (state.rank != rank)
      return fault("a microbatch of a stage is on two ranks",
                   text(order, ", and on rank ", state.rank));
    const auto twice = [&] { return fault("an action appears twice", describe(order)); };
    const auto early = [&](Kind kind) {
      const Order needed{kind, order.stage, order.item};
      if (std::ranges::none_of(list, [&](const Order& other) {
            return std::tie(other.kind, other.stage, other.item) ==
                   std::tie(needed.kind, needed.stage, needed.item);
          }))
        return fault("an action is missing", text("rank ", rank, " has no ", describe(needed),
                                                  " before ", describe(order)));
      return fault("an action comes before what it needs",
                   text(describe(order), " before ", describe(needed)));
    };
    switch (order.kind) {
      case Kind::forward:
        if (std::exchange(state.forward, true)) return twice();
        state.forward_at = i;
        break;
      case Kind::backward_weight:
        if (!state.backward) return early(Kind::backward_input);
        if (std::exchange(state.weights, true)) return twice();
        break;
      default:
        if (!state.forward) return early(Kind::forward);
        if (std::exchange(state.backward, true)) return twice();
        state.backward_at = i;
        state.weights = order.kind == Kind::backward;
    }
    return {};
  }

  std::optional<Fault> missing() const {
    for (std::size_t stage = 0; stage < m_stages; ++stage) {
      for (std::size_t item = 0; item < m_items; ++item) {
        const State* state = find(stage, item);
        if (state == nullptr) return missing_forward(Stage{stage}, Item{item});
        const auto order = [&](Kind kind) { return describe({kind, Stage{stage}, Item{item}}); };
        const auto fault = [&](std::size_t at, std::string lacks) {
          return Fault{state->rank, at, "a stage does not finish a microbatch", std::move(lacks)};
        };
        if (m_trains && !state->backward)
          return fault(
              state->forward_at,
              text("no ", order(Kind::backward), ", or ", order(Kind::backward_input), " and ",
                   order(Kind::backward_weight), ", after ", order(Kind::forward)));
        if (m_trains && !state->weights)
          return fault(state->backward_at, text("no ", order(Kind::backward_weight), " after ",
                                                order(Kind::backward_input)));
      }
    }
    return {};
  }

  /// Returns the fault for a missing forward. Its entry is the forward of a neighbouring stage, or
  /// an entry that shows that the stage or the microbatch exists.
  [[nodiscard]] Fault missing_forward(Stage stage, Item item) const {
    const Order lacks{Kind::forward, stage, item};
    const auto fault = [&](Rank rank, std::size_t at, const char* link) {
      return Fault{
          rank, at, "an action is missing",
          text("no rank has ", describe(lacks), link, describe(m_orders.ranks[+rank][at]))};
    };
    for (const bool downstream : {false, true})
      for (const auto& edge : m_graph.edges) {
        if ((downstream ? edge.from : edge.to) != stage) continue;
        if (const State* other = find(+(downstream ? edge.to : edge.from), +item))
          return fault(other->rank, other->forward_at,
                       downstream ? ", which comes before " : ", which comes after ");
      }
    if (m_graph.stages == 0) {  // a chain
      if (+stage > 0)
        if (const State* before = find(+stage - 1, +item))
          return fault(before->rank, before->forward_at, ", which comes after ");
      if (const State* after = find(+stage + 1, +item))
        return fault(after->rank, after->forward_at, ", which comes before ");
    }
    for (const bool same_item : {true, false})
      for (std::size_t rank = 0; rank < m_orders.ranks.size(); ++rank)
        for (std::size_t i = 0; i < m_orders.ranks[rank].size(); ++i)
          if (!same_item || m_orders.ranks[rank][i].item == item)
            return fault(Rank{rank}, i,
                         ", but every stage must compute every microbatch; there is ");
    return {};
  }

  std::optional<Fault> stuck() const {
    Progress progress(m_orders, graph_of(m_orders));
    if (progress.run([](Rank, std::span<const Order>) {})) return {};
    std::size_t rank = 0;
    while (progress.heads()[rank] == m_orders.ranks[rank].size()) ++rank;
    return Fault{Rank{rank}, progress.waits_for(rank)->entry, "the orders cannot progress",
                 progress.stuck(m_divided)};
  }

  [[nodiscard]] std::string describe(const Order& order) const { return m_divided.describe(order); }

  const DividedOrders& m_divided;
  const Orders& m_orders;
  const StageGraph& m_graph;
  std::size_t m_stages = 0;
  std::size_t m_items = 0;
  bool m_trains = false;
  std::unordered_map<std::size_t, Rank> m_homes;
  std::unordered_map<std::uint64_t, State> m_states;
};

}  // namespace heddle::inline v0::impl
