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
#include <heddle/simulate/internal/priced.hpp>
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
        m_readers(m_branches.size()),
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
    m_sequence = m_order;
    consider();
  }

  /// Tries all workers and orders within so many steps, by branch and bound. Returns true if it
  /// tried all of them, or if the best reaches a lower bound.
  bool improve(std::uint64_t steps) {
    m_steps = steps;
    m_free.assign(static_cast<std::size_t>(m_workers), Time{});
    m_last.assign(m_free.size(), none);
    m_ends.assign(m_branches.size(), std::nullopt);
    m_sequence.clear();
    m_left = Time{};
    for (const Time& time : m_times) m_left = m_left + time;
    return extend(Time{}, none) || !in_time(m_best->makespan, false);
  }

  /// Returns the best orders.
  [[nodiscard]] const Orders& orders() const { return m_best->orders; }
  /// Returns the Schedule of the best orders.
  [[nodiscard]] const Schedule& schedule() const { return m_best->schedule; }
  /// Returns the makespan of the best orders.
  [[nodiscard]] const Time& makespan() const { return m_best->makespan; }

 private:
  static constexpr std::size_t none = ~std::size_t{0};

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
    m_path = m_times;
    for (std::size_t b = m_branches.size(); b-- > 0;)  // m_path[b] is complete
      for (const std::size_t input : m_branches[b].inputs) {
        m_path[input] = std::max<Time>(m_path[input], m_times[input] + m_path[b]);
        m_readers[input].push_back(b);
      }
    std::stable_sort(m_order.begin(), m_order.end(),
                     [&](std::size_t a, std::size_t b) { return m_path[b] < m_path[a]; });
  }

  /// Returns when the inputs of `b` are there that are placed, and whether all of them are.
  [[nodiscard]] std::pair<Time, bool> ready(std::size_t b) const {
    std::pair<Time, bool> result{Time{}, true};
    for (const std::size_t input : m_branches[b].inputs) {
      if (m_ends[input]) result.first = std::max(result.first, *m_ends[input]);
      result.second = result.second && m_ends[input].has_value();
    }
    return result;
  }

  /// Returns true if a lower bound on the makespan of what is placed and all that is left is below
  /// `limit`, or, with `equal`, not above it.
  [[nodiscard]] bool in_time(const Time& limit, bool equal) const {
    const auto fits = [equal](const Time& a, const Time& b) { return equal ? !(b < a) : a < b; };
    Time work = m_left, room = {};
    for (const Time& free : m_free) {
      work = work + free;
      room = room + limit;
      if (limit < free) return false;
    }
    if (!fits(work, room)) return false;
    for (std::size_t b = 0; b < m_branches.size(); ++b)
      if (!m_ends[b] && !fits(ready(b).first + m_path[b], limit)) return false;
    return true;
  }

  /// Places one more branch in all ways, behind the last one, which begins at `from`. Every set of
  /// orders comes up once, because branches are placed in the order of their begins. Returns false
  /// if the steps are used up.
  bool extend(const Time& from, std::size_t last) {
    if (m_sequence.size() == m_order.size()) {
      if (m_steps < m_order.size()) return false;
      m_steps -= m_order.size();
      consider();
      return true;
    }
    for (const std::size_t b : m_order) {
      if (m_ends[b]) continue;
      const auto [inputs, all] = ready(b);
      if (!all) continue;
      for (std::size_t w = 0; w < m_free.size(); ++w) {
        const Time begin = std::max(inputs, m_free[w]);
        const bool follows = from < begin || (!(begin < from) &&
                                              (last == none || last < b || m_worker_of[last] == w));
        if (follows && !swaps_alike(m_last[w], b)) {
          if (m_steps == 0) return false;
          --m_steps;
          if (!place(b, w, begin)) return false;
        }
        if (m_last[w] == none) break;  // the workers behind it are alike
      }
    }
    return true;
  }

  /// Places `b` on worker `w` and goes on if that can be as good as the best.
  bool place(std::size_t b, std::size_t w, const Time& begin) {
    const Time free = m_free[w], left = m_left;
    const std::size_t last = m_last[w];
    m_worker_of[b] = w;
    m_last[w] = b;
    m_sequence.push_back(b);
    m_ends[b] = m_free[w] = begin + m_times[b];
    m_left = left - m_times[b];
    const bool goes_on = !in_time(m_best->makespan, true) || extend(begin, b);
    m_ends[b].reset();
    m_sequence.pop_back();
    m_last[w] = last;
    m_free[w] = free;
    m_left = left;
    return goes_on;
  }

  /// Returns true if `b` behind `before` on one worker is as good as the other way round, which is
  /// tried as well: both have the same inputs and readers.
  [[nodiscard]] bool swaps_alike(std::size_t before, std::size_t b) const {
    return before != none && b < before && m_branches[before].inputs == m_branches[b].inputs &&
           m_readers[before] == m_readers[b];
  }

  /// Simulates the present placement and keeps it if it is better than the best.
  void consider() {
    Orders orders = branch_orders(m_graph, m_branches, m_sequence, m_worker_of, m_workers);
    Schedule schedule = weave(orders);
    if (!m_outputs.empty()) schedule = heddle::impl::with_output_sizes(schedule, m_outputs);
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
  std::vector<Time> m_times;                        ///< by branch
  std::vector<Time> m_path;                         ///< by branch: the longest path from its begin
  std::vector<std::vector<std::size_t>> m_readers;  ///< by branch: those that read its output
  std::vector<std::size_t> m_order;                 ///< the branches, the longest path first
  std::vector<std::size_t> m_sequence;              ///< the placed branches by their begins
  std::vector<std::size_t> m_worker_of;             ///< by branch
  std::vector<std::optional<Time>> m_ends;          ///< by branch, if it is placed
  std::vector<Time> m_free;                         ///< by worker: the end of its branches
  std::vector<std::size_t> m_last;                  ///< by worker: its last branch
  Time m_left = {};                                 ///< the time of the branches not placed
  std::uint64_t m_steps = 0;                        ///< the steps that are left
  std::optional<Best> m_best;
};

}  // namespace heddle::inline v0::plan::impl
