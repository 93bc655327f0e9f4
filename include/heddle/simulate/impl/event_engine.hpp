// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// EventEngine: simulate() for queues that share ports, lines or units. These serve actions in the
/// order of time, not of the list.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include <heddle/core/contract.hpp>
#include <heddle/core/linkage.hpp>
#include <heddle/core/text.hpp>
#include <heddle/machine/machine.hpp>
#include <heddle/schedule/internal/is_tier_move.hpp>
#include <heddle/schedule/timeline.hpp>
#include <heddle/simulate/costs.hpp>
#include <heddle/simulate/impl/any_costs.hpp>
#include <heddle/simulate/internal/priced.hpp>
#include <heddle/simulate/sending.hpp>

namespace heddle::inline v0::impl {

/// The shared resources that the messages of each queue pass.
class Routes {
 public:
  Routes(const Schedule& schedule, const Machine& machine);

  /// Returns the number of shared resources on the way out.
  [[nodiscard]] std::size_t outs(QueueId queue) const {
    return m_begin[2 * +queue + 1] - m_begin[2 * +queue];
  }
  /// Returns the number of all shared resources on the way.
  [[nodiscard]] std::size_t size(QueueId queue) const {
    return m_begin[2 * +queue + 2] - m_begin[2 * +queue];
  }
  /// Returns the `hop`-th resource.
  [[nodiscard]] SharedId at(QueueId queue, std::size_t hop) const {
    return m_ids[m_begin[2 * +queue] + hop];
  }

 private:
  std::vector<SharedId> m_ids;
  std::vector<std::size_t> m_begin;
};

/// The times at which the units of one device are free, in ascending order.
template <class Time>
class UnitPool {
 public:
  explicit UnitPool(int units) : m_free(static_cast<std::size_t>(units)) {}

  [[nodiscard]] std::size_t size() const noexcept { return m_free.size(); }
  /// Returns the time at which `units` units are free, at `ready` at the earliest.
  [[nodiscard]] Time start(std::size_t units, Time ready) const {
    return std::max(ready, m_free[units - 1]);
  }
  /// Occupies the units that are free first until `end`, which is not earlier than their times.
  void take(std::size_t units, Time end) {
    const auto taken = m_free.begin() + static_cast<std::ptrdiff_t>(units);
    std::fill(m_free.begin(), taken, end);
    std::rotate(m_free.begin(), taken, std::lower_bound(taken, m_free.end(), end));
  }

 private:
  std::vector<Time> m_free;
};

/// One run of the simulator. It counts the ends that an action waits for. When the last of them is
/// known, the time at which the action is ready is known too. Actions that share nothing take place
/// at once. Others wait in a heap for their turn; at equal times the order of the list decides. No
/// event enters the heap that is earlier than an event that has left it, because no action ends
/// before it begins. Shared resources therefore see their messages in the order of time.
///
/// While an action waits, its span collects times: `start` is the latest end that its source waits
/// for, and `arrival` is that of its destination.
template <PricesShared C>
class EventEngine {
 public:
  using Time = typename C::Time;

  EventEngine(const Schedule& schedule, const C& costs, const Machine& machine,
              BasicTimeline<Time>& timeline, Sending sending)
      : m_schedule(schedule),
        m_costs(costs),
        m_machine(machine),
        m_spans(timeline.spans()),
        m_routes(schedule, machine),
        m_shared(machine.shared()),
        m_free(m_shared.size()),
        m_nodes(schedule.size() + 2),
        m_unbuffered(tier_queues(schedule)) {
    std::fill(m_spans.begin(), m_spans.end(), BasicSpan<Time>{});
    for (int rank = 0; rank < schedule.ranks(); ++rank)
      m_units.emplace_back(machine.device(Rank{rank}).units);
    connect(sending);
  }

  void run() {
    for (std::size_t i = m_spans.size(); i-- > 0;)
      if (m_nodes[i].source == 0 && !second(i)) m_ready.push_back(static_cast<std::uint32_t>(i));
    for (;;) {
      while (!m_ready.empty() || !m_delivered.empty()) {
        if (!m_delivered.empty())
          release(pop(m_delivered), 1);
        else
          begin(pop(m_ready));
      }
      if (m_heap.empty()) return;
      std::pop_heap(m_heap.begin(), m_heap.end(), later);
      const Event event = m_heap.back();
      m_heap.pop_back();
      take_turn(event);
    }
  }

 private:
  /// The state of one action: `edges` is the index of its first edge to a waiting action; its edges
  /// end at those of the next node. `source` and `destination` count the unknown ends that its two
  /// ends wait for.
  struct Node {
    std::uint32_t edges = 0;
    std::uint32_t source = 0;
    std::uint32_t destination = 0;
  };
  static constexpr std::uint32_t none = 0xffffffffu;
  /// The last action and the last move of a queue.
  struct Last {
    std::uint32_t action = none;
    std::uint32_t move = none;
  };
  struct Event {
    Time time;
    std::uint32_t action;
    std::uint32_t hop;
  };
  [[nodiscard]] static bool later(const Event& a, const Event& b) {
    if (b.time < a.time) return true;
    return !(a.time < b.time) && b.action < a.action;
  }

  [[nodiscard]] static std::uint32_t pop(std::vector<std::uint32_t>& stack) {
    const std::uint32_t action = stack.back();
    stack.pop_back();
    return action;
  }

  /// Returns true for the second action of a fused pair, which takes place with the first.
  [[nodiscard]] bool second(std::size_t action) const {
    return action > 0 && (m_schedule[ActionId{action - 1}].flags & flag::with_next) != 0;
  }

  /// Calls `edge(before, after)` for all dependencies, including the order of queues. `after` is
  /// the waiting action.
  template <class Edge>
  void for_each_edge(Sending sending, Edge&& edge) const {
    const auto actions = m_schedule.actions();
    std::vector<Last> last(m_schedule.queues().size());
    const std::uint32_t* const after_begin = m_schedule.after_begin().data();
    const After* const all_after = m_schedule.all_after().data();
    for (std::uint32_t i = 0; i < actions.size(); ++i) {
      const std::uint32_t who = second(i) ? i - 1 : i;  // a pair waits as one
      for (std::uint32_t a = after_begin[i]; a != after_begin[i + 1]; ++a) {
        const After after = all_after[a];
        edge(after.action, After::of(who, after.mine, after.end));
        if (after.mine == 1 &&
            (sending == Sending::rendezvous || m_unbuffered[+actions[who].queue]))
          edge(after.action, After::of(who, 0, after.end));
      }
      Last& of = last[+actions[i].queue];
      if (of.action != none && who == i) edge(of.action, After::of(i, 0, 0));
      of.action = i;
      if (actions[i].kind != Kind::move) continue;
      // Moves are delivered in order, but the queue does not wait for their latency.
      if (of.move != none) edge(of.move, After::of(i, 1, 1));
      of.move = i;
    }
  }

  void connect(Sending sending) {
    for_each_edge(sending, [&](std::uint32_t before, After after) {
      ++m_nodes[before + 2].edges;
      ++(after.mine ? m_nodes[after.action].destination : m_nodes[after.action].source);
    });
    for (std::size_t i = 2; i < m_nodes.size(); ++i) m_nodes[i].edges += m_nodes[i - 1].edges;
    m_edges.resize(m_nodes.back().edges);
    for_each_edge(sending, [&](std::uint32_t before, After after) {
      m_edges[m_nodes[before + 1].edges++] = after;
    });
    const auto actions = m_schedule.actions();
    for (std::size_t i = 0; i < actions.size(); ++i)
      if (actions[i].kind == Kind::move) ++m_nodes[i].destination;  // the message itself
  }

  /// Passes the time of one end of `action` to the actions that wait for it.
  void release(std::uint32_t action, std::uint32_t end) {
    const Time time = end ? m_spans[action].arrival : m_spans[action].end;
    for (std::uint32_t e = m_nodes[action].edges; e != m_nodes[action + 1].edges; ++e) {
      const After waits = m_edges[e];
      if (waits.end != end) continue;
      auto& span = m_spans[waits.action];
      Node& node = m_nodes[waits.action];
      if (waits.mine) {
        span.arrival = std::max(span.arrival, time);
        if (--node.destination == 0) m_delivered.push_back(waits.action);
      } else {
        span.start = std::max(span.start, time);
        if (--node.source == 0) m_ready.push_back(waits.action);
      }
    }
  }

  void push(Time time, std::uint32_t action, std::uint32_t hop) {
    m_heap.push_back({time, action, hop});
    std::push_heap(m_heap.begin(), m_heap.end(), later);
  }

  /// Handles an action when all ends that its source waits for are known.
  void begin(std::uint32_t i) {
    const Action& action = m_schedule[ActionId{i}];
    const Time ready = m_spans[i].start;
    if (action.kind == Kind::move) {
      // The uses are read when it is the action's turn. Most of the time is spent waiting for
      // memory.
      __builtin_prefetch(m_schedule.all_uses().data() + action.first_use);
      if (m_routes.outs(action.queue) != 0)
        push(ready, i, 0);
      else
        leave(i, ready);
    } else if (pool(i).size() != 0 && units(i) != 0) {
      push(ready, i, 0);
    } else {
      work(i);
    }
  }

  /// Handles the turn of an action at a shared resource.
  void take_turn(const Event& event) {
    const std::uint32_t i = event.action;
    const Action& action = m_schedule[ActionId{i}];
    auto& span = m_spans[i];
    if (action.kind != Kind::move) {
      span.start = pool(i).start(units(i), event.time);
      work(i);
      pool(i).take(units(i), m_spans[i].arrival);
      return;
    }
    const SharedId id = m_routes.at(action.queue, event.hop);
    const Time start = std::max(event.time, m_free[+id]);
    const Time end = start + shared_time(m_schedule, m_costs, ActionId{i}, m_shared[+id]);
    m_free[+id] = end;
    const std::size_t outs = m_routes.outs(action.queue);
    if (event.hop < outs) {
      if (event.hop == 0) span.start = start;
      span.end = std::max(span.end, end);
      if (event.hop + 1 < outs)
        push(start, i, event.hop + 1);
      else
        leave(i, start);
    } else {
      span.arrival = std::max(span.arrival, end);
      if (event.hop + 1 < m_routes.size(action.queue))
        push(start, i, event.hop + 1);
      else
        arrive(i);
    }
  }

  /// Handles a message that has passed all ways out. Its first byte passes at `head`; its last byte
  /// passes when the slowest of them and its own link have served it.
  void leave(std::uint32_t i, Time head) {
    const Transfer<Time> transfer = transfer_time(m_schedule, m_costs, ActionId{i});
    auto& span = m_spans[i];
    span.end = std::max(span.end, Time(head + transfer.occupancy));
    span.arrival = std::max(span.arrival, Time(span.end + transfer.latency));
    const QueueId queue = m_schedule[ActionId{i}].queue;
    const std::size_t outs = m_routes.outs(queue);
    if (outs < m_routes.size(queue))
      push(head + transfer.latency, i, static_cast<std::uint32_t>(outs));
    release(i, 0);
    if (outs == m_routes.size(queue)) arrive(i);
  }
  void arrive(std::uint32_t i) {
    if (--m_nodes[i].destination == 0) m_delivered.push_back(i);
  }

  /// Handles local work, whose start is known.
  void work(std::uint32_t i) {
    const ActionId id{i};
    auto& span = m_spans[i];
    const bool fused = (m_schedule[id].flags & flag::with_next) != 0;
    if (fused) {
      const Time both = fused_time(m_schedule, m_costs, id);
      auto& partner = m_spans[i + 1];
      span.end = partner.start = span.start + std::min(work_time(m_schedule, m_costs, id), both);
      span.arrival = partner.end = partner.arrival = span.start + both;
    } else {
      span.end = span.arrival = span.start + work_time(m_schedule, m_costs, id);
    }
    for (std::uint32_t each = i; each <= i + (fused ? 1 : 0); ++each) {
      release(each, 0);
      release(each, 1);
    }
  }

  [[nodiscard]] UnitPool<Time>& pool(std::uint32_t i) {
    return m_units[+m_schedule[m_schedule[ActionId{i}].queue].from];
  }
  /// Returns the units of the device that an action needs. A fused pair needs the maximum of its
  /// actions.
  [[nodiscard]] std::size_t units(std::uint32_t i) {
    const Action& action = m_schedule[ActionId{i}];
    std::size_t wanted = action.units;
    if (action.flags & flag::with_next)
      wanted = std::max<std::size_t>(wanted, m_schedule[ActionId{i + 1}].units);
    expects(wanted <= pool(i).size(), [&] {
      return ErrorInfo{"heddle::simulate", "an action needs more units than its device has",
                       text("action ", i, " of '", m_schedule.name(), "' needs ", wanted, " of ",
                            pool(i).size())};
    });
    return wanted;
  }

  const Schedule& m_schedule;
  const C& m_costs;
  const Machine& m_machine;
  std::vector<BasicSpan<Time>>& m_spans;
  Routes m_routes;
  std::span<const Shared> m_shared;
  std::vector<Time> m_free;                ///< when each shared resource is free
  std::vector<UnitPool<Time>> m_units;     ///< by rank; size 0 if units are not counted
  std::vector<Node> m_nodes;               ///< by action, and two more
  std::vector<bool> m_unbuffered;          ///< queues whose moves start when their storage is free
  std::vector<After> m_edges;              ///< the waiting actions, ordered by what they wait for
  std::vector<std::uint32_t> m_ready;      ///< a stack of actions whose start is known
  std::vector<std::uint32_t> m_delivered;  ///< a stack of moves whose arrival is known
  std::vector<Event> m_heap;
};

}  // namespace heddle::inline v0::impl

#if HEDDLE_DEFINES_SIMULATE
#include <heddle/simulate/impl/event_engine.ipp>
#endif
