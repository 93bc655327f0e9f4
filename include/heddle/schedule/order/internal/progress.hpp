// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// Progress: runs Orders without storage. The ranks take turns. A rank runs the head of its list
/// when all actions that the head waits for are done.

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include <heddle/core/linkage.hpp>
#include <heddle/schedule/order/orders.hpp>
#include <heddle/schedule/order/stage_graph.hpp>

namespace heddle::inline v0::impl {

class DividedOrders;

/// Returns true if the orders contain a backward pass.
[[nodiscard]] bool trains(const Orders& orders);

/// Returns the graph of the orders, or a chain if they have no graph. If the orders contain no
/// backward pass, the result has no edges that end at one.
[[nodiscard]] StageGraph graph_of(const Orders& orders);

/// Returns the number of microbatches: one more than the highest microbatch.
[[nodiscard]] std::size_t items_of(const Orders& orders);

/// The stages that a stage waits for.
struct StageInputs {
  std::vector<Stage> forward;    ///< its forward needs their forward
  std::vector<Stage> exchanged;  ///< its backward needs their forward
  std::vector<Stage> backward;   ///< its backward needs their backward
};

/// Returns the inputs of every stage. All edges of the graph must connect existing stages.
[[nodiscard]] std::vector<StageInputs> inputs_of(const StageGraph& graph);

/// The time at which a rank sees the progress of another rank.
enum class Sight : std::uint8_t {
  at_once,    ///< in the same sweep, if its turn is later
  next_sweep  ///< in the next sweep, as if all actions took the same time on parallel ranks
};

/// The progress of the ranks. All stages of the orders must be in the graph, and all fused entries
/// must have a partner.
class Progress {
 public:
  Progress(const Orders& orders, const StageGraph& graph, Sight sight = Sight::at_once);

  /// Sweeps over the ranks until none can run its head. In a sweep each rank runs one entry or a
  /// fused pair. Calls `done(rank, together)` with a span of the one or two orders. A rank skips
  /// the sweep if `elsewhere(rank, head)` returns true; `head` is the number of entries that the
  /// rank has run. Returns true if all lists have run to their ends.
  template <class Done, class Elsewhere>
  bool run(Done&& done, Elsewhere&& elsewhere) {
    m_awaited.assign(m_heads.size(), nullptr);  // the orders may have changed since the last run
    std::size_t open = 0;                       // ranks that have not reached the end of their list
    for (bool any = true; any;) {
      any = false;
      open = 0;
      m_seen = ++m_sweep - m_behind;
      for (std::size_t rank = 0; rank < m_heads.size(); ++rank) {
        const std::span<const Order> list = m_orders.ranks[rank];
        std::size_t& head = m_heads[rank];
        if (elsewhere(Rank{rank}, std::as_const(head))) {
          any = true;
          continue;
        }
        if (head == list.size()) continue;
        ++open;
        const std::uint32_t*& awaited = m_awaited[rank];
        if (awaited != nullptr && !seen(*awaited)) continue;
        if (const auto lacks = missing_at(rank)) {
          awaited = &sweep_of(*lacks);
          continue;
        }
        awaited = nullptr;
        const auto together = list.subspan(head, list[head].fused ? 2 : 1);
        for (const Order& order : together) note(order);
        done(Rank{rank}, together);
        head += together.size();
        any = true;
      }
    }
    return open == 0;
  }

  template <class Done>
  bool run(Done&& done) {
    return run(done, [](Rank, std::size_t) { return false; });
  }

  /// Returns the number of entries that every rank has run.
  [[nodiscard]] const std::vector<std::size_t>& heads() const noexcept { return m_heads; }

  /// An order that could not run, and the first order that it waits for.
  struct Wait {
    std::size_t entry;  ///< its number in the list: the head, or the partner of the fused head
    Order lacks;
  };
  /// Returns the order that the head of `rank` waits for after run(), or none if the head could
  /// run. The rank must not be at the end of its list.
  [[nodiscard]] std::optional<Wait> waits_for(std::size_t rank) const;

  /// Returns the heads that run() has reached and the orders that they wait for, as text. The
  /// Progress must have been made from the orders of `names`.
  [[nodiscard]] std::string stuck(const DividedOrders& names) const;

 private:
  [[nodiscard]] std::size_t at(Stage stage, Item item) const { return +stage * m_items + +item; }

  [[nodiscard]] std::optional<Order> missing_at(std::size_t rank) const {
    const Order* const head = &m_orders.ranks[rank][m_heads[rank]];
    auto found = missing(head[0]);
    if (!found && head->fused) found = missing(head[1]);
    return found;
  }

  [[nodiscard]] std::optional<Order> missing(const Order& order) const {
    const StageInputs& before = m_before[+order.stage];
    const auto forward = [&](Stage stage) { return seen(m_forward[at(stage, order.item)]); };
    const auto backward = [&](Stage stage) { return seen(m_backward[at(stage, order.item)]); };
    switch (order.kind) {
      case Kind::forward:
        for (const Stage from : before.forward)
          if (!forward(from)) return Order{Kind::forward, from, order.item};
        break;
      case Kind::backward_input:
      case Kind::backward:
        if (!forward(order.stage)) return Order{Kind::forward, order.stage, order.item};
        for (const Stage from : before.exchanged)
          if (!forward(from)) return Order{Kind::forward, from, order.item};
        for (const Stage to : before.backward)
          if (!backward(to)) return Order{Kind::backward, to, order.item};
        break;
      case Kind::backward_weight:
        if (!backward(order.stage)) return Order{Kind::backward_input, order.stage, order.item};
        break;
      default: break;
    }
    return {};
  }

  /// Returns true if the backward passes of a stage are split into I and W.
  [[nodiscard]] bool splits(Stage stage) const;

  [[nodiscard]] bool seen(std::uint32_t sweep) const { return sweep != 0 && sweep <= m_seen; }

  /// Returns the sweep in which an F, I or B ran.
  [[nodiscard]] std::uint32_t& sweep_of(const Order& order) {
    return (order.kind == Kind::forward ? m_forward : m_backward)[at(order.stage, order.item)];
  }

  void note(const Order& order) {
    if (order.kind == Kind::forward || order.kind == Kind::backward_input ||
        order.kind == Kind::backward)
      sweep_of(order) = m_sweep;
  }

  const Orders& m_orders;
  std::uint32_t m_behind;  ///< the number of sweeps after which results are seen
  std::size_t m_items;
  std::vector<StageInputs> m_before;
  std::vector<std::uint32_t> m_forward;   ///< the sweep, by stage and microbatch; 0: not yet
  std::vector<std::uint32_t> m_backward;  ///< the same for I or B
  std::vector<std::size_t> m_heads;
  std::vector<const std::uint32_t*>
      m_awaited;  ///< by rank: the sweep of the order that its head waits for
  std::uint32_t m_sweep = 0;
  std::uint32_t m_seen = 0;  ///< the last sweep whose results are seen
};

}  // namespace heddle::inline v0::impl

#if HEDDLE_DEFINES_SCHEDULE
#include <heddle/schedule/order/internal/progress.ipp>
#endif
