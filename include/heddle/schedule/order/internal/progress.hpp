// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// Progress: runs Orders without storage. The ranks take turns. A rank runs the head of its list
/// when all actions that the head waits for are done.

#include <bit>
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
  /// rank has run. It is not asked again before the rank has run its head if it returns false.
  /// Returns true if all lists have run to their ends.
  template <class Done, class Elsewhere>
  bool run(Done&& done, Elsewhere&& elsewhere) {
    std::size_t open = begin();  // ranks that have not reached the end of their list
    while (begin_sweep()) {
      for (std::size_t word = 0; word < m_turns.size(); ++word)
        while (m_turns[word] != 0) {
          const auto rank = 64 * word + static_cast<std::size_t>(std::countr_zero(m_turns[word]));
          m_turns[word] &= m_turns[word] - 1;
          const std::span<const Order> list = m_orders.ranks[rank];
          std::size_t& head = m_heads[rank];
          if (elsewhere(Rank{rank}, std::as_const(head))) {
            set(m_next_turns, rank);
            continue;
          }
          if (head == list.size()) continue;
          if (const auto lacks = missing_at(rank)) {
            await(rank, sweep_of(*lacks));
            continue;
          }
          const auto together = list.subspan(head, list[head].fused ? 2 : 1);
          for (const Order& order : together) note(order, rank);
          done(Rank{rank}, together);
          head += together.size();
          if (head == list.size()) --open;
          set(m_next_turns, rank);
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
    const auto forward = [&](Stage stage) { return seen(m_sweeps[at(stage, order.item)].forward); };
    const auto backward = [&](Stage stage) {
      return seen(m_sweeps[at(stage, order.item)].backward);
    };
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
    Sweeps& sweeps = m_sweeps[at(order.stage, order.item)];
    return order.kind == Kind::forward ? sweeps.forward : sweeps.backward;
  }

  /// Notes that `rank` runs the order, and gives the ranks that wait for it their turns.
  void note(const Order& order, std::size_t rank) {
    if (order.kind > Kind::backward || order.kind == Kind::backward_weight) return;
    std::uint32_t& sweep = sweep_of(order);
    for (std::uint32_t waits = sweep; waits >= waiter; waits = m_next_waiter[waits - waiter]) {
      const std::size_t other = waits - waiter;
      set(m_behind == 0 && other > rank ? m_turns : m_next_turns, other);
    }
    sweep = m_sweep;
  }

  /// Lets `rank` wait for the order of `sweep`: until it runs, or until it is seen.
  void await(std::size_t rank, std::uint32_t& sweep) {
    if (sweep != 0 && sweep < waiter) return set(m_next_turns, rank);
    m_next_waiter[rank] = sweep;
    sweep = waiter + static_cast<std::uint32_t>(rank);
    m_awaited[rank] = &sweep;
  }

  /// Gives all ranks a turn. Returns the number of those that are not at the end of their list.
  [[nodiscard]] std::size_t begin();
  /// Begins a sweep. Returns false if no rank has a turn.
  [[nodiscard]] bool begin_sweep();

  static void set(std::vector<std::uint64_t>& turns, std::size_t rank) {
    turns[rank / 64] |= std::uint64_t{1} << rank % 64;
  }

  const Orders& m_orders;
  std::uint32_t m_behind;  ///< the number of sweeps after which results are seen
  std::size_t m_items;
  std::vector<StageInputs> m_before;
  /// Added to the number of the last rank that waits for an order, in the place of its sweep.
  static constexpr std::uint32_t waiter = 1u << 31;
  /// The sweeps in which a stage ran F, and I or B, of a microbatch. 0: not yet.
  struct Sweeps {
    std::uint32_t forward = 0, backward = 0;
  };
  std::vector<Sweeps> m_sweeps;  ///< by stage and microbatch
  std::vector<std::size_t> m_heads;
  std::vector<std::uint32_t> m_next_waiter;  ///< by rank: one that waits for the same, or 0
  std::vector<std::uint32_t*> m_awaited;     ///< by rank: the last order that it has waited for
  std::vector<std::uint64_t> m_turns;        ///< a bit for each rank: its turn is in this sweep
  std::vector<std::uint64_t> m_next_turns;   ///< the same for the next sweep
  std::uint32_t m_sweep = 0;
  std::uint32_t m_seen = 0;  ///< the last sweep whose results are seen
};

}  // namespace heddle::inline v0::impl

#if HEDDLE_DEFINES_SCHEDULE
#include <heddle/schedule/order/internal/progress.ipp>
#endif
