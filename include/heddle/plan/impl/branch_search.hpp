// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// BranchSearch: finds the placement of branches on workers for place_branches().

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <numeric>
#include <optional>
#include <utility>
#include <vector>

#include <heddle/core/units.hpp>
#include <heddle/plan/impl/branch_graph.hpp>
#include <heddle/schedule/order/weave.hpp>
#include <heddle/schedule/output_sizes.hpp>
#include <heddle/schedule/schedule.hpp>
#include <heddle/simulate/impl/priced.hpp>
#include <heddle/simulate/simulate.hpp>

namespace heddle::inline v0::plan::impl {

/// Placements of the branches of a graph, and the best of those that were made.
template <Costs C>
class BranchSearch {
  using Time = typename C::Time;

 public:
  /// All arguments outlive the object.
  BranchSearch(const StageGraph& graph, const C& costs, int workers,
               const std::vector<Bytes>& outputs)
      : m_graph(graph),
        m_costs(costs),
        m_workers(workers),
        m_outputs(outputs),
        m_branches(branches_of(graph)),
        m_times(m_branches.size()),
        m_order(m_branches.size()),
        m_worker_of(m_branches.size(), 0) {
    std::iota(m_order.begin(), m_order.end(), std::size_t{0});
    price();
    sort();
  }

  /// Places every branch on the worker that can begin it first.
  void longest_first() {
    const auto workers = static_cast<std::size_t>(m_workers);
    std::vector<Time> free(workers, Time{});
    std::vector<Time> end(m_branches.size(), Time{});
    for (const std::size_t b : m_order) {
      std::vector<std::size_t> held(workers, 0);  // inputs on each worker
      Time ready = {};
      for (const std::size_t input : m_branches[b].inputs) {
        ready = std::max(ready, end[input]);
        ++held[m_worker_of[input]];
      }
      std::size_t best = 0;
      for (std::size_t w = 1; w < workers; ++w) {
        const Time mine = std::max(ready, free[w]), other = std::max(ready, free[best]);
        if (mine < other || (!(other < mine) && held[w] > held[best])) best = w;
      }
      m_worker_of[b] = best;
      free[best] = end[b] = std::max(ready, free[best]) + m_times[b];
    }
    consider();
  }

  /// Returns the number of placements, or a number above `limit`.
  [[nodiscard]] std::uint64_t placements(std::uint64_t limit) const {
    return groupings(m_branches.size(), static_cast<std::size_t>(m_workers), limit);
  }

  /// Simulates all placements, except those in which a worker computes longer than the best.
  void compare_all() {
    m_load.assign(static_cast<std::size_t>(m_workers), Time{});
    place(0, 0);
  }

  /// Returns the best orders.
  [[nodiscard]] const Orders& orders() const { return m_best->orders; }
  /// Returns the Schedule of the best orders.
  [[nodiscard]] const Schedule& schedule() const { return m_best->schedule; }
  /// Returns the makespan of the best orders.
  [[nodiscard]] const Time& makespan() const { return m_best->makespan; }

 private:
  struct Best {
    Orders orders;
    Schedule schedule;
    Time makespan;
    std::pair<Bytes, std::size_t> messages;  ///< bytes and number
  };

  /// Sets the time of every branch, from the Schedule of one worker.
  void price() {
    const Schedule serial = weave(branch_orders(m_graph, m_branches, m_order, m_worker_of, 1));
    std::vector<std::size_t> branch_of(static_cast<std::size_t>(m_graph.stages));
    for (std::size_t b = 0; b < m_branches.size(); ++b)
      for (const Stage stage : m_branches[b].stages) branch_of[+stage] = b;
    for (std::size_t i = 0; i < serial.size(); ++i) {
      Time& time = m_times[branch_of[+serial[ActionId{i}].stage]];
      time = time + heddle::impl::work_time(serial, m_costs, ActionId{i});
    }
  }

  /// Sorts the branches by the longest path from their begin to the end of all work. Among equals
  /// a branch stays behind its inputs.
  void sort() {
    std::vector<Time> path = m_times;
    for (std::size_t b = m_branches.size(); b-- > 0;)  // path[b] is complete
      for (const std::size_t input : m_branches[b].inputs)
        path[input] = std::max<Time>(path[input], m_times[input] + path[b]);
    std::stable_sort(m_order.begin(), m_order.end(),
                     [&](std::size_t a, std::size_t b) { return path[b] < path[a]; });
  }

  /// Places the branches from place `next` of the order on, with `used` workers so far.
  void place(std::size_t next, std::size_t used) {
    if (next == m_order.size()) return consider();
    const std::size_t b = m_order[next];
    const std::size_t choices = std::min(used + 1, m_load.size());
    for (std::size_t w = 0; w < choices; ++w) {
      const Time before = m_load[w];
      const Time load = before + m_times[b];
      if (m_best->makespan < load) continue;
      m_load[w] = load;
      m_worker_of[b] = w;
      place(next + 1, std::max(used, w + 1));
      m_load[w] = before;
    }
  }

  /// Simulates the present placement and keeps it if it is better than the best.
  void consider() {
    Orders orders = branch_orders(m_graph, m_branches, m_order, m_worker_of, m_workers);
    Schedule schedule = weave(orders);
    if (!m_outputs.empty()) schedule = with_output_sizes(schedule, m_outputs);
    std::pair<Bytes, std::size_t> messages{0, 0};
    for (std::size_t i = 0; i < schedule.size(); ++i)
      if (schedule[ActionId{i}].kind == Kind::move) {
        messages.first += schedule.bytes(schedule.uses(ActionId{i}).front());
        ++messages.second;
      }
    const Time makespan = simulate(schedule, m_costs).makespan();
    if (m_best && (m_best->makespan < makespan ||
                   (!(makespan < m_best->makespan) && m_best->messages <= messages)))
      return;
    m_best = {std::move(orders), std::move(schedule), makespan, messages};
  }

  const StageGraph& m_graph;
  const C& m_costs;
  int m_workers;
  const std::vector<Bytes>& m_outputs;
  std::vector<Branch> m_branches;
  std::vector<Time> m_times;             ///< by branch
  std::vector<std::size_t> m_order;      ///< the branches in the order of each worker
  std::vector<std::size_t> m_worker_of;  ///< by branch
  std::vector<Time> m_load;              ///< by worker: the time of its branches so far
  std::optional<Best> m_best;
};

}  // namespace heddle::inline v0::plan::impl
