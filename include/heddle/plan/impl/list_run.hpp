// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// ListRun: one run of list scheduling over the events, from time zero to the last order.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <queue>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include <heddle/core/linkage.hpp>
#include <heddle/plan/impl/cap_guard.hpp>
#include <heddle/plan/impl/list_problem.hpp>
#include <heddle/plan/priority.hpp>
#include <heddle/plan/solver/list_options.hpp>
#include <heddle/schedule/order/orders.hpp>

namespace heddle::inline v0::plan::impl {

/// A rank that a cap holds back.
struct HeldBack {
  std::size_t rank = 0;
  std::int64_t live = 0;  ///< activations that it keeps
  Order order;            ///< its next forward, which has no room
};

/// Throws the blocked_order of a dead end under a cap, with `where` in front. The grid of the error
/// shows `lists`, which are the orders so far, and the order of the first rank that is held back.
[[noreturn]] void refuse_dead_end(const std::string& where, std::int64_t cap,
                                  const std::vector<HeldBack>& held,
                                  std::vector<std::vector<Order>> lists);

/// One run of list scheduling.
template <class Time>
class ListRun {
 public:
  ListRun(const ListProblem<Time>& problem, const ListOptions& options)
      : m_problem(problem),
        m_options(options),
        m_guard(problem, options),
        m_channels(problem.channels),
        m_ranks(problem.ranks),
        m_lists(problem.ranks) {
    for (const auto& node : problem.nodes) m_inputs.push_back(node.inputs);
    m_urgency.resize(problem.nodes.size());
    for (std::size_t n = 0; n < problem.nodes.size(); ++n)
      if (!problem.nodes[n].moves) m_urgency[n] = options.priority(problem.candidates[n]);
  }

  /// Returns a list of orders for every rank. @throws blocked_order in a dead end, with `where` in
  /// front.
  std::vector<std::vector<Order>> lists(const std::string& where) {
    for (std::uint32_t n = 0; n < m_inputs.size(); ++n)
      if (m_inputs[n] == 0) make_ready(n, Time{});
    dispatch(Time{});
    while (!m_events.empty()) {
      const Time now = m_events.top().at;
      while (!m_events.empty() && !(now < m_events.top().at)) {
        const std::uint32_t node = m_events.top().node;
        m_events.pop();
        complete(node, now);
      }
      dispatch(now);
    }
    if (m_taken < m_problem.orders) fail(where);
    return std::move(m_lists);
  }

 private:
  struct Event {
    Time at;
    std::uint32_t node;
    bool operator>(const Event& other) const {
      return other.at < at || (!(at < other.at) && node > other.node);
    }
  };
  using Ready = std::set<std::pair<Urgency, std::uint32_t>>;
  struct RankState {
    bool busy = false;
    Ready forwards, others;
  };

  void make_ready(std::uint32_t number, Time now) {
    const auto& node = m_problem.nodes[number];
    if (node.moves) {
      Time& free = m_channels[node.queue];
      free = std::max(free, now) + node.takes;
      m_events.push({free + node.latency, number});
      return;
    }
    RankState& rank = m_ranks[node.queue];
    (node.order.kind == Kind::forward ? rank.forwards : rank.others)
        .insert({m_urgency[number], number});
    m_touched.push_back(node.queue);
  }

  void complete(std::uint32_t number, Time now) {
    const auto& node = m_problem.nodes[number];
    if (!node.moves) {
      m_ranks[node.queue].busy = false;
      m_touched.push_back(node.queue);
    }
    for (std::uint32_t e = m_problem.first[number]; e < m_problem.first[number + 1]; ++e)
      if (--m_inputs[m_problem.next[e]] == 0) make_ready(m_problem.next[e], now);
  }

  /// Gives every idle rank the most urgent order that the cap allows. Only ranks whose state has
  /// changed since the last call can take a new order.
  void dispatch(Time now) {
    for (const std::uint32_t r : m_touched) {
      RankState& rank = m_ranks[r];
      if (rank.busy) continue;
      auto forward = rank.forwards.begin();
      while (forward != rank.forwards.end() &&
             !m_guard.allows(r, m_problem.nodes[forward->second].order))
        ++forward;
      const bool can = forward != rank.forwards.end();
      if (!can && rank.others.empty()) continue;
      if (can && (rank.others.empty() || *forward < *rank.others.begin())) {
        start(r, forward->second, now);
        rank.forwards.erase(forward);
      } else {
        start(r, rank.others.begin()->second, now);
        rank.others.erase(rank.others.begin());
      }
    }
    m_touched.clear();
  }

  void start(std::uint32_t r, std::uint32_t number, Time now) {
    const auto& node = m_problem.nodes[number];
    m_guard.take(r, node.order);
    m_ranks[r].busy = true;
    m_lists[r].push_back(node.order);
    ++m_taken;
    m_events.push({now + node.takes, number});
  }

  [[noreturn]] void fail(const std::string& where) {
    std::vector<HeldBack> held;
    for (std::size_t r = 0; r < m_ranks.size(); ++r)
      if (!m_ranks[r].forwards.empty())
        held.push_back(
            {r, m_guard.live(r), m_problem.nodes[m_ranks[r].forwards.begin()->second].order});
    refuse_dead_end(where, m_options.cap, held, std::move(m_lists));
  }

  const ListProblem<Time>& m_problem;
  const ListOptions& m_options;
  CapGuard m_guard;
  std::vector<std::uint32_t> m_inputs;  ///< missing inputs of each node
  std::vector<Time> m_channels;         ///< when each channel is free
  std::vector<RankState> m_ranks;
  std::vector<Urgency> m_urgency;
  std::vector<std::uint32_t> m_touched;  ///< ranks that may have something to start
  std::priority_queue<Event, std::vector<Event>, std::greater<>> m_events;
  std::vector<std::vector<Order>> m_lists;
  std::size_t m_taken = 0;
};

}  // namespace heddle::inline v0::plan::impl

#if HEDDLE_DEFINES_PLAN
#include <heddle/plan/impl/list_run.ipp>
#endif
