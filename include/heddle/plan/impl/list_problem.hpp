// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// ListProblem: the dependencies and costs of a set of orders, which do not depend on their order.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

#include <heddle/core/index.hpp>
#include <heddle/core/linkage.hpp>
#include <heddle/plan/priority.hpp>
#include <heddle/schedule/action.hpp>
#include <heddle/schedule/order/orders.hpp>
#include <heddle/schedule/schedule.hpp>
#include <heddle/simulate/costs.hpp>
#include <heddle/simulate/internal/priced.hpp>

namespace heddle::inline v0::plan::impl {

/// An order, or a move that an order needs.
template <class Time>
struct ListNode {
  Order order;
  std::uint32_t queue = 0;   ///< the rank of an order, the channel of a move
  bool moves = false;        ///< true if it is a move
  std::uint32_t inputs = 0;  ///< number of nodes that it needs
  Time takes = {};           ///< the time until its queue is free
  Time latency = {};         ///< the time from then until others see its result
};

/// Returns the level of each stage, by stage_levels().
[[nodiscard]] std::vector<int> order_levels(const Orders& orders);

/// The nodes of woven orders, by the numbers of their actions.
template <class Time>
struct ListProblem {
  std::vector<ListNode<Time>> nodes;
  std::vector<std::uint32_t> first, next;  ///< the nodes that need node n are next[first[n]...]
  std::vector<Candidate> candidates;       ///< by node; meaningless for moves
  std::size_t ranks = 0;
  std::size_t channels = 0;
  std::size_t stages = 0;
  std::size_t orders = 0;  ///< number of nodes that are not moves
  bool trains = false;     ///< true if there are backwards

  template <Costs C>
  ListProblem(const Orders& given, const Schedule& schedule, const C& costs)
      : ranks(given.ranks.size()), channels(schedule.queues().size()) {
    read_nodes(schedule, costs);
    read_edges(schedule);
    describe(order_levels(given));
  }

 private:
  template <Costs C>
  void read_nodes(const Schedule& schedule, const C& costs) {
    for (std::size_t i = 0; i < schedule.size(); ++i) {
      const Action& action = schedule[ActionId{i}];
      ListNode<Time> node;
      if (action.kind == Kind::move) {
        const auto transfer = heddle::impl::transfer_time(schedule, costs, ActionId{i});
        node.moves = true;
        node.queue = action.queue.value;
        node.takes = transfer.occupancy;
        node.latency = transfer.latency;
      } else if (action.kind <= Kind::backward) {
        node.order = {action.kind, action.stage, action.item};
        node.queue = schedule[action.queue].from.value;
        node.takes = heddle::impl::work_time(schedule, costs, ActionId{i});
        stages = std::max(stages, +action.stage + 1);
        trains |= action.kind != Kind::forward;
        ++orders;
      } else {
        break;  // updates and sums of gradients come after all orders, and stay there
      }
      nodes.push_back(node);
    }
  }

  /// Finds the edges: a node needs the nodes that wrote what it reads. A sum is updated, not read,
  /// because its order is what is being decided.
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
    for (std::uint32_t n = 0; n < nodes.size(); ++n) {
      for (const Use& use : schedule.uses(ActionId{n})) {
        std::uint32_t& last = writer[first_part[+use.buffer] + use.first];
        if (use.access() == Access::write) last = n;
        if (use.access() == Access::read && last != nobody) edges.push_back({last, n});
      }
    }
    first.assign(nodes.size() + 1, 0);
    for (const auto& [from, to] : edges) {
      ++first[from + 1];
      ++nodes[to].inputs;
    }
    for (std::size_t n = 0; n < nodes.size(); ++n) first[n + 1] += first[n];
    next.resize(edges.size());
    std::vector<std::uint32_t> end(first.begin(), first.end() - 1);
    for (const auto& [from, to] : edges) next[end[from]++] = to;
  }

  void describe(const std::vector<int>& level) {
    const int levels = 1 + *std::max_element(level.begin(), level.end());
    // Turns: the microbatches of each stage on each rank, in ascending order.
    std::vector<std::vector<Item>> items(ranks * level.size());
    const auto of = [&](const ListNode<Time>& node) -> std::vector<Item>& {
      return items[node.queue * level.size() + +node.order.stage];
    };
    for (const auto& node : nodes)
      if (!node.moves && node.order.kind == Kind::forward) of(node).push_back(node.order.item);
    for (auto& list : items) std::sort(list.begin(), list.end());
    candidates.resize(nodes.size());
    for (std::size_t n = 0; n < nodes.size(); ++n) {
      const auto& node = nodes[n];
      if (node.moves) continue;
      const auto& list = of(node);
      const auto turn = std::lower_bound(list.begin(), list.end(), node.order.item) - list.begin();
      candidates[n] = {node.order, Rank{node.queue}, static_cast<int>(turn),
                       level[+node.order.stage], levels};
    }
  }
};

}  // namespace heddle::inline v0::plan::impl

#if HEDDLE_DEFINES_PLAN
#include <heddle/plan/impl/list_problem.ipp>
#endif
