// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// Definitions of fill_idle_with_weights.hpp.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <string>
#include <utility>
#include <vector>

#include <heddle/core/contract.hpp>
#include <heddle/core/linkage.hpp>
#include <heddle/core/text.hpp>
#include <heddle/schedule/internal/is_time.hpp>
#include <heddle/schedule/order/blocked_order.hpp>
#include <heddle/schedule/order/fault.hpp>
#include <heddle/schedule/order/internal/divided_orders.hpp>
#include <heddle/schedule/order/internal/progress.hpp>
#include <heddle/schedule/order/orders.hpp>
#include <heddle/schedule/order/stage_graph.hpp>
#include <heddle/schedule/pass/fill_idle_with_weights.hpp>

namespace heddle::inline v0::schedule {

HEDDLE_INLINE double impl::unit_price(const Order& order) {
  return order.kind == Kind::backward ? 2 : 1;
}

namespace impl {

/// The state of one fill_idle_with_weights() call: the clock of every rank and the end times of the
/// orders.
class WeightFiller {
 public:
  WeightFiller(const Orders& orders, const FillOptions& options)
      : m_orders(orders),
        m_options(options),
        m_ranks(orders.ranks.size()),
        m_items(heddle::impl::items_of(orders)) {
    expects(options.cap >= 0, [&] {
      return fail("the cap on activations must be at least 0", text("cap = ", options.cap),
                  "0 means no limit");
    });
    expects(options.price != nullptr, [&] {
      return fail("the price is an empty function", {}, "leave it out: 1 for F, I and W, 2 for B");
    });
    expects(0 <= options.share && options.share <= 1, [&] {
      return fail("the share must be between 0 and 1", text("share = ", options.share));
    });
    expects(heddle::impl::is_time(options.transfer),
            [&] { return heddle::impl::no_time(where(), "transfer", options.transfer); });
    heddle::impl::refuse_shares(orders, "heddle::schedule::fill_idle_with_weights");
    read_graph(heddle::impl::graph_of(orders));
    expects(options.activations.empty() || (options.activations.size() == m_before.size() &&
                                            std::ranges::min(options.activations) >= 0),
            [&] {
              return fail(
                  "every stage needs a number of kept activations",
                  text(options.activations.size(), " numbers for ", m_before.size(), " stages"));
            });
    read_orders();
  }

  Orders run() {
    // The result of a rank depends on times only, not on the order in which the ranks step. They
    // step in ascending and then in descending order, because forwards go up the ranks and
    // backwards go down.
    for (bool any = true; any;) {
      any = false;
      const std::size_t ranks = m_ranks.size();
      for (std::size_t turn = 0; turn < 2 * ranks; ++turn)
        while (step(turn < ranks ? turn : 2 * ranks - 1 - turn)) any = true;
    }
    for (std::size_t rank = 0; rank < m_ranks.size(); ++rank) {
      if (m_ranks[rank].head < m_orders.ranks[rank].size()) stuck();
      while (has_weights(m_ranks[rank])) do_weights(m_ranks[rank]);
    }
    Orders result{m_orders.name + ", idle time filled", {}, m_orders.graph};
    for (RankState& rank : m_ranks) result.ranks.push_back(std::move(rank.list));
    return result;
  }

 private:
  using Pass = std::pair<Stage, Item>;
  static constexpr double never = std::numeric_limits<double>::infinity();

  /// The times at which a microbatch left a stage, and the rank of the stage.
  struct Done {
    double forward = never;
    double backward = never;
    std::uint32_t rank = 0;
  };
  struct RankState {
    std::size_t head = 0;        ///< index in the list of the orders
    double clock = 0;            ///< end time of the last entry of `list`
    std::int64_t live = 0;       ///< live activations
    std::vector<Order> weights;  ///< the W of every I so far
    std::size_t weights_done = 0;
    std::vector<Order> list;  ///< the resulting orders
  };

  [[nodiscard]] std::string where() const {
    return text("heddle::schedule::fill_idle_with_weights(", m_orders.name, ")");
  }
  [[nodiscard]] ErrorInfo fail(std::string what, std::string why, std::string fix = {}) const {
    return {where(), std::move(what), std::move(why), std::move(fix)};
  }

  void read_graph(const StageGraph& graph) {
    const auto stages = static_cast<std::size_t>(graph.stages);
    for (const StageGraph::Edge& edge : graph.edges) {
      expects(+edge.from < stages && +edge.to < stages, [&] {
        return fail("the stage graph has an edge to no stage", text(edge.from, " -> ", edge.to));
      });
    }
    m_before = heddle::impl::inputs_of(graph);
    m_done.resize(stages * m_items);
  }

  void read_orders() {
    for (std::uint32_t rank = 0; rank < m_ranks.size(); ++rank) {
      std::vector<Pass> inputs, weights;
      bool follows = false;  // whether the order is the second of a fused pair
      for (const Order& order : m_orders.ranks[rank]) {
        expects(+order.stage < m_before.size(), [&] {
          return fail("an order names a stage that the graph lacks",
                      text(order, " on rank ", rank, ", stages 0 to ", m_before.size() - 1));
        });
        expects(order.kind <= Kind::backward, [&] {
          return fail("the orders must not contain updates, because a W could move past its update",
                      text("found ", order, " on rank ", rank));
        });
        expects(order.kind != Kind::backward_weight || (!order.fused && !follows), [&] {
          return fail("a fused W cannot be moved", text("found ", order, " on rank ", rank));
        });
        follows = order.fused;
        if (order.kind == Kind::backward_input) inputs.emplace_back(order.stage, order.item);
        if (order.kind == Kind::backward_weight) weights.emplace_back(order.stage, order.item);
        if (order.kind == Kind::forward) done(order).rank = rank;
      }
      std::sort(inputs.begin(), inputs.end());
      std::sort(weights.begin(), weights.end());
      expects(inputs == weights, [&] {
        const auto [input, weight] =
            std::mismatch(inputs.begin(), inputs.end(), weights.begin(), weights.end());
        const bool lacks_weights =
            weight == weights.end() || (input != inputs.end() && *input < *weight);
        const auto [stage, item] = lacks_weights ? *input : *weight;
        return fail("every I needs exactly one W on its rank",
                    text(stage, lacks_weights ? Kind::backward_input : Kind::backward_weight, item,
                         " on rank ", rank, " has no ",
                         lacks_weights ? Kind::backward_weight : Kind::backward_input));
      });
      m_ranks[rank].list.reserve(m_orders.ranks[rank].size());
      m_ranks[rank].weights.reserve(weights.size());
    }
  }

  [[nodiscard]] double price(const Order& order) const {
    const double value = m_options.price(order);
    expects(heddle::impl::is_time(value),
            [&] { return heddle::impl::no_time(where(), text("price of ", order), value); });
    return value;
  }

  Done& done(const Order& order) { return m_done[+order.stage * m_items + +order.item]; }

  /// Returns the time at which `rank` has the inputs of `order`, or `never` if one of them is not
  /// computed yet.
  double ready(std::uint32_t rank, const Order& order) {
    double latest = 0;
    const auto wait = [&](Stage stage, double Done::*when) {
      const Done& other = done({order.kind, stage, order.item});
      latest = std::max(latest, other.*when + (other.rank == rank ? 0 : m_options.transfer));
    };
    const heddle::impl::StageInputs& before = m_before[+order.stage];
    if (order.kind == Kind::forward) {
      for (const Stage from : before.forward) wait(from, &Done::forward);
    } else {
      wait(order.stage, &Done::forward);
      for (const Stage from : before.exchanged) wait(from, &Done::forward);
      for (const Stage to : before.backward) wait(to, &Done::backward);
    }
    return latest;
  }

  [[nodiscard]] std::int64_t keeps(const Order& order) const {
    return m_options.activations.empty() ? 1 : m_options.activations[+order.stage];
  }
  static bool has_weights(const RankState& rank) { return rank.weights_done < rank.weights.size(); }
  void do_weights(RankState& rank) {
    rank.list.push_back(rank.weights[rank.weights_done++]);
    rank.clock += price(rank.list.back());
    rank.live -= keeps(rank.list.back());
  }

  [[nodiscard]] bool pays(double gap, const Order& weights) const {
    return gap > 0 && gap >= m_options.share * price(weights);
  }

  /// Appends the next order of a rank: a W if the cap or a gap requires it, otherwise the head of
  /// its list with its fused partners. Returns false if the next order cannot be decided yet.
  bool step(std::size_t number) {
    RankState& rank = m_ranks[number];
    const auto& list = m_orders.ranks[number];
    while (rank.head < list.size() && list[rank.head].kind == Kind::backward_weight) ++rank.head;
    if (rank.head == list.size()) return false;
    std::size_t end = rank.head + 1;
    while (list[end - 1].fused && end < list.size()) ++end;

    double start = rank.clock;
    for (std::size_t i = rank.head; i < end; ++i)
      start = std::max(start, ready(static_cast<std::uint32_t>(number), list[i]));
    const bool no_room = full(number);
    if (no_room && !has_weights(rank)) return false;
    if (!no_room && start == never) return false;
    if (no_room ||
        (has_weights(rank) && pays(start - rank.clock, rank.weights[rank.weights_done]))) {
      do_weights(rank);
      return true;
    }
    rank.clock = start;
    for (std::size_t i = rank.head; i < end; ++i) rank.clock += price(list[i]);
    for (; rank.head < end; ++rank.head) finish(rank, list[rank.head]);
    return true;
  }

  void finish(RankState& rank, const Order& order) {
    rank.list.push_back(order);
    (order.kind == Kind::forward ? done(order).forward : done(order).backward) = rank.clock;
    if (order.kind == Kind::forward) rank.live += keeps(order);
    if (order.kind == Kind::backward) rank.live -= keeps(order);
    if (order.kind == Kind::backward_input)
      rank.weights.push_back({Kind::backward_weight, order.stage, order.item});
  }

  /// Returns whether the head of a rank's list, with its fused partners, would exceed the cap.
  [[nodiscard]] bool full(std::size_t number) const {
    const RankState& rank = m_ranks[number];
    const auto& list = m_orders.ranks[number];
    std::int64_t more = 0;
    for (std::size_t i = rank.head; i < list.size(); ++i) {
      if (list[i].kind == Kind::forward) more += keeps(list[i]);
      if (!list[i].fused) break;
    }
    return m_options.cap > 0 && more > 0 && rank.live + more > m_options.cap;
  }

  /// Throws blocked_order. It marks the first head that the cap holds back, or the first blocked
  /// head if the cap holds back none.
  [[noreturn]] void stuck() const {
    Fault first;
    bool capped = false;
    for (std::size_t rank = 0; rank < m_ranks.size(); ++rank) {
      const RankState& state = m_ranks[rank];
      if (state.head == m_orders.ranks[rank].size()) continue;
      if (first.why.empty() || (!capped && full(rank))) {
        first.rank = Rank{rank};
        first.entry = state.head;
      }
      capped |= full(rank);
      first.why += text(first.why.empty() ? "" : ", ", "rank ", rank, " keeps ", state.live,
                        " activations at ", m_orders.ranks[rank][state.head]);
    }
    first.what = capped ? text("a cap of ", m_options.cap, " activations is too small")
                        : "the orders cannot progress";
    throw blocked_order(where(), std::move(first),
                        capped ? "raise the cap, or use orders that keep fewer activations" : "",
                        m_orders);
  }

  const Orders& m_orders;
  const FillOptions& m_options;
  std::vector<RankState> m_ranks;
  std::size_t m_items;                              ///< number of microbatches
  std::vector<heddle::impl::StageInputs> m_before;  ///< per stage
  std::vector<Done> m_done;                         ///< per stage and microbatch
};

}  // namespace impl

HEDDLE_INLINE Orders fill_idle_with_weights(const Orders& orders, const FillOptions& options) {
  return impl::WeightFiller(orders, options).run();
}

}  // namespace heddle::inline v0::schedule
