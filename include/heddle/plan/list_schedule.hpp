// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// List scheduling: what every rank computes is given, in which order is decided event by event.
/// For schedules that no formula gives: unequal stages, branches, memory limits.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <queue>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include <heddle/core/contract.hpp>
#include <heddle/core/text.hpp>
#include <heddle/plan/priority.hpp>
#include <heddle/schedule/action_text.hpp>
#include <heddle/schedule/stage_levels.hpp>
#include <heddle/schedule/weave.hpp>
#include <heddle/simulate/costs.hpp>

namespace heddle::inline v0::plan {

/// How a rank chooses among its orders.
struct ListOptions {
  Priority priority = backward_first;  ///< which goes first
  std::int64_t cap = 0;                ///< most activations that a rank keeps; 0: no limit
  std::vector<std::int64_t> activations =
      {};  ///< what a forward of each stage keeps; empty: one each
};

/// Reorders one set of Orders by many rules. What depends on what, and what it costs, is found
/// once.
template <Costs C>
class ListScheduler {
 public:
  using Time = typename C::Time;  ///< what costs are in

  /// Takes over what every rank computes; the order in `orders` only has to be one that weave()
  /// accepts. Moves of `sizes` are priced by `costs` as simulate() does.
  /// @throws contract_error for orders with updates or fused pairs: their places are part of what
  ///         they mean.
  ListScheduler(const Orders& orders, const C& costs, const StageSizes& sizes = {})
      : m_orders(orders), m_ranks(orders.ranks.size()) {
    for (const auto& list : orders.ranks)
      for (const Order& order : list)
        expects(order.kind <= Kind::B && !order.fused, [&] {
          return Complaint{where(), "updates and fused pairs are not moved about",
                           text("found ", order, order.fused ? ", fused" : "")};
        });
    const Schedule schedule = weave(orders, sizes);
    read_nodes(schedule, costs);
    read_edges(schedule);
    describe(schedule);
  }

  /// The orders in which every rank, whenever it is idle, takes the most urgent order of those
  /// whose inputs are there and whose activations fit under the cap. Greedy: it may be beaten, and
  /// under a cap it may lead into a dead end. Ties go by the place in the original orders. Forwards
  /// are held back by the cap only where there are backwards.
  /// @throws infeasible where no rank can go on within the cap; it names the cap and the ranks.
  /// @throws contract_error for activations that are not one number of at least 0 for each stage,
  ///         or a negative cap.
  [[nodiscard]] Orders run(const ListOptions& options) const {
    expects(options.cap >= 0, [&] {
      return Complaint{where(), "a cap is a number of activations", text("cap = ", options.cap),
                       "0 means no limit"};
    });
    expects((options.activations.empty() || options.activations.size() == m_level.size()) &&
                std::all_of(options.activations.begin(), options.activations.end(),
                            [](std::int64_t each) { return each >= 0; }),
            [&] {
              return Complaint{
                  where(), "every stage keeps a number of activations",
                  text(options.activations.size(), " numbers for ", m_level.size(), " stages")};
            });
    return Run(*this, options).orders();
  }

 private:
  /// An action of the woven schedule: an order, or a move that follows from one.
  struct Node {
    Order order;
    std::uint32_t queue = 0;   ///< the rank of an order, the channel of a move
    bool moves = false;        ///< it is a move
    std::uint32_t inputs = 0;  ///< of other nodes
    Time takes = {};           ///< until its queue is free
    Time latency = {};         ///< from then until others see what it did
  };
  struct Event {
    Time at;
    std::uint32_t node;
    bool operator>(const Event& other) const {
      return other.at < at || (!(at < other.at) && node > other.node);
    }
  };

  /// One pass over the events.
  class Run {
   public:
    Run(const ListScheduler& problem, const ListOptions& options)
        : m_problem(problem),
          m_options(options),
          m_inputs(problem.m_nodes.size()),
          m_channels(problem.m_channels),
          m_ranks(problem.m_ranks) {
      for (std::size_t n = 0; n < m_inputs.size(); ++n) m_inputs[n] = problem.m_nodes[n].inputs;
      m_result = {problem.m_orders.name, {}, problem.m_orders.graph};
      m_result.ranks.resize(problem.m_ranks);
      m_urgency.resize(m_inputs.size());
      for (std::size_t n = 0; n < m_inputs.size(); ++n)
        if (!problem.m_nodes[n].moves) m_urgency[n] = options.priority(problem.m_candidates[n]);
    }

    Orders orders() {
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
      if (m_taken < m_problem.m_compute) throw infeasible(dead_end());
      return std::move(m_result);
    }

   private:
    using Ready = std::set<std::pair<Urgency, std::uint32_t>>;
    struct RankState {
      bool busy = false;
      std::int64_t live = 0;
      Ready forwards, others;
    };

    [[nodiscard]] std::int64_t keeps(const Order& order) const {
      if (!m_problem.m_trains) return 0;
      return m_options.activations.empty() ? 1 : m_options.activations[+order.stage];
    }
    [[nodiscard]] bool fits(const RankState& rank, const Order& order) const {
      return m_options.cap == 0 || rank.live + keeps(order) <= m_options.cap;
    }

    void make_ready(std::uint32_t number, Time now) {
      const Node& node = m_problem.m_nodes[number];
      if (node.moves) {
        Time& free = m_channels[node.queue];
        free = std::max(free, now) + node.takes;
        m_events.push({free + node.latency, number});
        return;
      }
      RankState& rank = m_ranks[node.queue];
      (node.order.kind == Kind::F ? rank.forwards : rank.others)
          .insert({m_urgency[number], number});
      m_touched.push_back(node.queue);
    }

    void complete(std::uint32_t number, Time now) {
      const Node& node = m_problem.m_nodes[number];
      if (!node.moves) {
        m_ranks[node.queue].busy = false;
        m_touched.push_back(node.queue);
      }
      for (std::uint32_t e = m_problem.m_first[number]; e < m_problem.m_first[number + 1]; ++e)
        if (--m_inputs[m_problem.m_next[e]] == 0) make_ready(m_problem.m_next[e], now);
    }

    void dispatch(Time now) {
      for (const std::uint32_t r : m_touched) {
        RankState& rank = m_ranks[r];
        if (rank.busy) continue;
        auto forward = rank.forwards.begin();
        while (forward != rank.forwards.end() &&
               !fits(rank, m_problem.m_nodes[forward->second].order))
          ++forward;
        const bool can = forward != rank.forwards.end();
        if (!can && rank.others.empty()) continue;
        Ready& from = can && (rank.others.empty() || *forward < *rank.others.begin())
                          ? rank.forwards
                          : rank.others;
        const auto chosen = &from == &rank.forwards ? forward : from.begin();
        start(r, chosen->second, now);
        from.erase(chosen);
      }
      m_touched.clear();
    }

    void start(std::uint32_t r, std::uint32_t number, Time now) {
      const Node& node = m_problem.m_nodes[number];
      RankState& rank = m_ranks[r];
      if (node.order.kind == Kind::F) rank.live += keeps(node.order);
      if (node.order.kind == Kind::B || node.order.kind == Kind::W) rank.live -= keeps(node.order);
      rank.busy = true;
      m_result.ranks[r].push_back(node.order);
      ++m_taken;
      m_events.push({now + node.takes, number});
    }

    [[nodiscard]] Complaint dead_end() const {
      std::string held;
      for (std::size_t r = 0; r < m_ranks.size(); ++r) {
        if (m_ranks[r].forwards.empty()) continue;
        held += text(held.empty() ? "" : ", ", "rank ", r, " keeps ", m_ranks[r].live,
                     " and has no room for ",
                     m_problem.m_nodes[m_ranks[r].forwards.begin()->second].order);
      }
      return {m_problem.where(),
              text("a dead end under the cap of ", m_options.cap, " activations"), held,
              "raise the cap, or take another priority"};
    }

    const ListScheduler& m_problem;
    const ListOptions& m_options;
    std::vector<std::uint32_t> m_inputs;  ///< of each node, still missing
    std::vector<Time> m_channels;         ///< when each is free
    std::vector<RankState> m_ranks;
    std::vector<Urgency> m_urgency;
    std::vector<std::uint32_t> m_touched;  ///< ranks that may have something to start
    std::priority_queue<Event, std::vector<Event>, std::greater<>> m_events;
    Orders m_result;
    std::size_t m_taken = 0;
  };

  [[nodiscard]] std::string where() const {
    return text("heddle::plan::list_schedule(", m_orders.name, ")");
  }

  /// Updates and group actions come after all orders, and stay there.
  static bool counts(Kind kind) { return kind <= Kind::B || kind == Kind::move; }

  void read_nodes(const Schedule& schedule, const C& costs) {
    m_nodes.resize(schedule.size());
    m_channels.resize(schedule.queues().size());
    for (std::size_t i = 0; i < schedule.size(); ++i) {
      const Action& action = schedule[ActionId{i}];
      if (!counts(action.kind)) {
        m_nodes.resize(i);
        break;
      }
      Node& node = m_nodes[i];
      if (action.kind == Kind::move) {
        const auto transfer = costs.transfer(schedule, ActionId{i});
        node.moves = true;
        node.queue = action.queue.value;
        node.takes = transfer.occupancy;
        node.latency = transfer.latency;
        continue;
      }
      node.order = {action.kind, action.stage, action.item};
      node.queue = schedule[action.queue].from.value;
      node.takes = costs.time(schedule, ActionId{i});
      m_trains |= action.kind != Kind::F;
      ++m_compute;
    }
  }

  /// A node needs the nodes that wrote what it reads. Sums are continued, not read: their order is
  /// what is being decided.
  void read_edges(const Schedule& schedule) {
    std::vector<std::size_t> first_part;
    std::size_t parts = 0;
    for (const Buffer& buffer : schedule.buffers()) {
      first_part.push_back(parts);
      parts += buffer.parts;
    }
    constexpr std::uint32_t nobody = 0xffffffffu;
    std::vector<std::uint32_t> writer(parts, nobody);
    std::vector<std::pair<std::uint32_t, std::uint32_t>> edges;
    for (std::uint32_t n = 0; n < m_nodes.size(); ++n) {
      for (const Use& use : schedule.uses(ActionId{n})) {
        std::uint32_t& last = writer[first_part[+use.buffer] + use.first];
        if (use.access() == Access::write) last = n;
        if (use.access() == Access::read && last != nobody) edges.push_back({last, n});
      }
    }
    m_first.assign(m_nodes.size() + 1, 0);
    for (const auto& [from, to] : edges) {
      ++m_first[from + 1];
      ++m_nodes[to].inputs;
    }
    for (std::size_t n = 0; n < m_nodes.size(); ++n) m_first[n + 1] += m_first[n];
    m_next.resize(edges.size());
    std::vector<std::uint32_t> end(m_first.begin(), m_first.end() - 1);
    for (const auto& [from, to] : edges) m_next[end[from]++] = to;
  }

  void describe(const Schedule& schedule) {
    int stages = 0;
    for (const Buffer& buffer : schedule.buffers())
      stages = std::max(stages, static_cast<int>(+buffer.stage) + 1);
    m_level = stage_levels(m_orders.graph.stages > 0 ? m_orders.graph : StageGraph::chain(stages));
    const int levels = m_level.empty() ? 0 : 1 + *std::max_element(m_level.begin(), m_level.end());
    // Turns: the microbatches of each stage on each rank, in ascending order.
    std::vector<std::vector<Item>> items(m_ranks * m_level.size());
    const auto of = [&](const Node& node) -> std::vector<Item>& {
      return items[node.queue * m_level.size() + +node.order.stage];
    };
    for (const Node& node : m_nodes)
      if (!node.moves && node.order.kind == Kind::F) of(node).push_back(node.order.item);
    for (auto& list : items) std::sort(list.begin(), list.end());
    m_candidates.resize(m_nodes.size());
    for (std::size_t n = 0; n < m_nodes.size(); ++n) {
      const Node& node = m_nodes[n];
      if (node.moves) continue;
      const auto& list = of(node);
      const auto turn = std::lower_bound(list.begin(), list.end(), node.order.item) - list.begin();
      m_candidates[n] = {node.order, Rank{node.queue}, static_cast<int>(turn),
                         m_level[+node.order.stage], levels};
    }
  }

  Orders m_orders;
  std::size_t m_ranks;
  std::size_t m_compute = 0;  ///< nodes that are orders
  bool m_trains = false;
  std::vector<Node> m_nodes;
  std::vector<std::uint32_t> m_first, m_next;  ///< nodes that need node n: m_next[m_first[n]...]
  std::vector<Time> m_channels;                ///< zeros, one for each queue
  std::vector<int> m_level;                    ///< of each stage
  std::vector<Candidate> m_candidates;         ///< by node; empty for moves
};

/// `orders` in the order that list scheduling gives them; see ListScheduler.
/// @throws infeasible where no rank can go on within the cap.
template <Costs C>
[[nodiscard]] Orders list_schedule(const Orders& orders, const C& costs,
                                   const ListOptions& options = {}, const StageSizes& sizes = {}) {
  return ListScheduler<C>(orders, costs, sizes).run(options);
}
/// The same with costs in braces: `list_schedule(orders, {.F = 1, .B = 2})`.
[[nodiscard]] inline Orders list_schedule(const Orders& orders, const StageCosts& costs,
                                          const ListOptions& options = {},
                                          const StageSizes& sizes = {}) {
  return list_schedule<StageCosts>(orders, costs, options, sizes);
}

}  // namespace heddle::inline v0::plan
