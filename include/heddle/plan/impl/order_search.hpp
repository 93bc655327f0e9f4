// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// OrderSearch: improves orders by swaps of neighbours on the critical path.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

#include <heddle/plan/impl/list_clock.hpp>
#include <heddle/plan/impl/list_problem.hpp>
#include <heddle/schedule/order/orders.hpp>

namespace heddle::inline v0::plan::impl {

/// A tabu search in the neighbourhood of Van Laarhoven et al. ("Job shop scheduling by simulated
/// annealing", Operations Research 40, 1992). Every step swaps two neighbours of a rank that are on
/// the critical path. It takes the swap with the least estimated makespan by heads and tails, even
/// if that is longer than before, and does not undo a recent swap. Microbatches keep their order
/// in every kind of every stage. The result is deterministic.
template <class Time>
class OrderSearch {
 public:
  /// `activations` are those that a forward of each stage keeps, empty for one each. `caps` are the
  /// most that each rank keeps, empty for no limit.
  OrderSearch(const ListProblem<Time>& problem, const ListClock<Time>& clock,
              const std::vector<std::int64_t>& caps, const std::vector<std::int64_t>& activations)
      : m_problem(problem), m_clock(clock), m_caps(caps), m_activations(activations) {
    m_after.resize(problem.nodes.size());
    m_before.resize(problem.nodes.size());
    for (std::uint32_t n = 0; n < problem.nodes.size(); ++n) {
      if (problem.nodes[n].moves) continue;
      for (std::uint32_t e = problem.first[n]; e < problem.first[n + 1]; ++e)
        connect(n, problem.next[e], Time{});
    }
  }

  /// Takes `steps` steps from `orders`. Calls `found(orders)` for every result that is shorter than
  /// all before, and than `orders`, if messages do not wait for each other.
  template <class Found>
  void run(const Orders& orders, std::int64_t steps, const Found& found) {
    read(orders);
    if (!measure()) return;
    Time best = m_makespan;
    Orders candidate = orders;
    std::int64_t improved = 0;
    const std::int64_t patience = std::max<std::int64_t>(steps / 8, 500);
    for (std::int64_t step = 0; step < steps; ++step) {
      if (step - improved > patience) {
        // A long walk without success starts again from the best, a few swaps aside.
        improved = step;
        read(candidate);
        for (int i = 0; i < 8 && measure() && any_swap(); ++i) take();
        if (!measure()) read(candidate);
        if (!measure()) return;
      }
      if (!choose(step, best) && !any_swap()) return;
      take();
      if (!measure()) {
        take();
        (void)measure();
        continue;
      }
      if (!(m_makespan < best)) continue;
      best = m_makespan;
      improved = step;
      for (std::size_t r = 0; r < m_lists.size(); ++r)
        for (std::size_t i = 0; i < m_lists[r].size(); ++i)
          candidate.ranks[r][i] = m_problem.nodes[m_lists[r][i]].order;
      found(candidate);
    }
  }

 private:
  static constexpr std::uint32_t nobody = 0xffffffffu;

  struct Edge {
    std::uint32_t node;
    Time delay;  ///< from the end of one order to the start of the other
  };
  /// The entries `place` and `place` + 1 of a rank.
  struct Swap {
    std::size_t rank = 0;
    std::size_t place = 0;
    Time estimate = {};
  };
  struct Tabu {
    std::uint32_t first = nobody, second = nobody;  ///< must not come in this order again
    std::int64_t until = 0;
  };

  void connect(std::uint32_t from, std::uint32_t to, const Time& delay) {
    const auto& node = m_problem.nodes[to];
    if (!node.moves) {
      m_after[from].push_back({to, delay});
      m_before[to].push_back({from, delay});
      return;
    }
    for (std::uint32_t e = m_problem.first[to]; e < m_problem.first[to + 1]; ++e)
      connect(from, m_problem.next[e], delay + node.takes + node.latency);
  }

  void read(const Orders& orders) {
    const std::size_t nodes = m_problem.nodes.size();
    m_lists.assign(orders.ranks.size(), {});
    m_place.assign(nodes, 0);
    m_kept.assign(nodes, 0);
    m_head.resize(nodes);
    m_tail.resize(nodes);
    m_tabu.assign(tenure, {});
    for (std::size_t r = 0; r < orders.ranks.size(); ++r) {
      std::int64_t kept = 0;
      for (const Order& order : orders.ranks[r]) {
        const std::uint32_t n = m_clock.node(order);
        m_place[n] = m_lists[r].size();
        m_lists[r].push_back(n);
        m_kept[n] = kept;
        kept += change(n);
      }
    }
  }

  /// Returns by how much an order changes the activations of its rank.
  [[nodiscard]] std::int64_t change(std::uint32_t n) const {
    const Order& order = m_problem.nodes[n].order;
    const std::int64_t each = m_activations.empty() ? 1 : m_activations[+order.stage];
    if (order.kind == Kind::forward) return each;
    return order.kind == Kind::backward_input ? 0 : -each;
  }
  [[nodiscard]] std::size_t rank(std::uint32_t n) const { return m_problem.nodes[n].queue; }
  [[nodiscard]] const Time& takes(std::uint32_t n) const { return m_problem.nodes[n].takes; }
  [[nodiscard]] std::uint32_t neighbour(std::uint32_t n, bool next) const {
    const auto& list = m_lists[rank(n)];
    const std::size_t place = m_place[n];
    if (next) return place + 1 < list.size() ? list[place + 1] : nobody;
    return place > 0 ? list[place - 1] : nobody;
  }
  [[nodiscard]] Time end(std::uint32_t n) const { return m_head[n] + takes(n); }

  /// Returns the time at which the inputs of `n` are there.
  [[nodiscard]] Time inputs(std::uint32_t n) const {
    Time ready{};
    for (const Edge& edge : m_before[n]) ready = std::max(ready, end(edge.node) + edge.delay);
    return ready;
  }
  /// Returns the time from the end of `n` to the end of the last order that uses its result.
  [[nodiscard]] Time outputs(std::uint32_t n) const {
    Time left{};
    for (const Edge& edge : m_after[n])
      left = std::max(left, edge.delay + takes(edge.node) + m_tail[edge.node]);
    return left;
  }

  /// Computes heads, tails and the makespan. Returns false if the orders cannot progress.
  bool measure() {
    m_missing.resize(m_problem.nodes.size());
    for (std::uint32_t n = 0; n < m_missing.size(); ++n)
      m_missing[n] = static_cast<std::uint32_t>(m_before[n].size());
    m_next.assign(m_lists.size(), 0);
    m_sequence.clear();
    m_waiting.clear();
    for (std::size_t r = m_lists.size(); r-- > 0;) m_waiting.push_back(r);
    m_makespan = Time{};
    m_last = nobody;
    while (!m_waiting.empty()) {
      const std::size_t r = m_waiting.back();
      m_waiting.pop_back();
      const auto& list = m_lists[r];
      for (std::size_t& at = m_next[r]; at < list.size() && m_missing[list[at]] == 0; ++at) {
        const std::uint32_t n = list[at];
        m_head[n] = inputs(n);
        if (at > 0) m_head[n] = std::max(m_head[n], end(list[at - 1]));
        m_sequence.push_back(n);
        if (m_last == nobody || m_makespan < end(n)) {
          m_makespan = end(n);
          m_last = n;
        }
        for (const Edge& edge : m_after[n]) {
          if (--m_missing[edge.node] > 0) continue;
          const std::size_t other = rank(edge.node);
          if (other != r && m_place[edge.node] == m_next[other]) m_waiting.push_back(other);
        }
      }
    }
    if (m_sequence.size() < m_problem.orders) return false;
    for (std::size_t i = m_sequence.size(); i-- > 0;) {
      const std::uint32_t n = m_sequence[i];
      m_tail[n] = outputs(n);
      if (const std::uint32_t next = neighbour(n, true); next != nobody)
        m_tail[n] = std::max(m_tail[n], takes(next) + m_tail[next]);
    }
    return true;
  }

  /// Returns true if the entries may be swapped: no cap is exceeded, none needs the other, and they
  /// are not the same computation of two microbatches.
  [[nodiscard]] bool may_swap(std::uint32_t first, std::uint32_t second) const {
    const Order& a = m_problem.nodes[first].order;
    const Order& b = m_problem.nodes[second].order;
    if (a.kind == b.kind && a.stage == b.stage) return false;
    if (!m_caps.empty() && b.kind == Kind::forward &&
        m_kept[first] + change(second) > m_caps[rank(second)])
      return false;
    return std::ranges::find(m_after[first], second, &Edge::node) == m_after[first].end();
  }

  /// Returns the longest path through two neighbours after their swap.
  [[nodiscard]] Time estimate(std::uint32_t first, std::uint32_t second) const {
    Time head = inputs(second);
    if (const auto before = neighbour(first, false); before != nobody)
      head = std::max(head, end(before));
    const Time middle = std::max(Time(head + takes(second)), inputs(first));
    Time tail = outputs(first);
    if (const auto after = neighbour(second, true); after != nobody)
      tail = std::max(tail, Time(takes(after) + m_tail[after]));
    const Time through_second =
        head + takes(second) + std::max(Time(takes(first) + tail), outputs(second));
    return std::max(through_second, Time(middle + takes(first) + tail));
  }

  /// Chooses the best swap on the critical path. Returns false if there is none.
  bool choose(std::int64_t step, const Time& best) {
    std::size_t ties = 0;
    for (std::uint32_t n = m_last; n != nobody;) {
      const std::uint32_t before = neighbour(n, false);
      const bool follows = before != nobody && !(end(before) < m_head[n]);
      if (follows && may_swap(before, n)) {
        const Swap swap{rank(n), m_place[before], estimate(before, n)};
        if (swap.estimate < best || !is_tabu(n, before, step)) {
          const bool better = ties == 0 || swap.estimate < m_swap.estimate;
          const bool equal = !better && !(m_swap.estimate < swap.estimate);
          if (better) ties = 0;
          if (better || equal) ++ties;
          if (better || (equal && random() % ties == 0)) m_swap = swap;
        }
      }
      std::uint32_t from = nobody;
      for (const Edge& edge : m_before[n])
        if (!(end(edge.node) + edge.delay < m_head[n])) from = edge.node;
      // Both may be critical. The next steps see the other path.
      n = follows && (from == nobody || random() % 2 == 0) ? before : from;
    }
    if (ties == 0) return false;
    const auto& list = m_lists[m_swap.rank];
    m_tabu[static_cast<std::size_t>(step) % tenure] = {
        list[m_swap.place], list[m_swap.place + 1],
        step + static_cast<std::int64_t>(tenure / 2 + random() % (tenure / 2))};
    return true;
  }

  /// Chooses any swap that keeps the cap. Returns false if a few tries find none.
  bool any_swap() {
    for (int i = 0; i < 64; ++i) {
      const std::size_t r = random() % m_lists.size();
      const auto& list = m_lists[r];
      if (list.size() < 2) continue;
      const std::size_t place = random() % (list.size() - 1);
      if (!may_swap(list[place], list[place + 1])) continue;
      m_swap = {r, place, Time{}};
      return true;
    }
    return false;
  }

  [[nodiscard]] bool is_tabu(std::uint32_t first, std::uint32_t second, std::int64_t step) const {
    return std::ranges::any_of(m_tabu, [&](const Tabu& each) {
      return each.first == first && each.second == second && step < each.until;
    });
  }

  /// Swaps the chosen entries.
  void take() {
    auto& list = m_lists[m_swap.rank];
    std::uint32_t& first = list[m_swap.place];
    std::uint32_t& second = list[m_swap.place + 1];
    const std::int64_t kept = m_kept[first];
    std::swap(first, second);
    m_place[first] = m_swap.place;
    m_place[second] = m_swap.place + 1;
    m_kept[first] = kept;
    m_kept[second] = kept + change(first);
  }

  /// Returns a number of a fixed sequence (Marsaglia's xorshift).
  std::uint64_t random() {
    m_state ^= m_state << 13;
    m_state ^= m_state >> 7;
    m_state ^= m_state << 17;
    return m_state;
  }

  static constexpr std::size_t tenure = 24;

  const ListProblem<Time>& m_problem;
  const ListClock<Time>& m_clock;
  const std::vector<std::int64_t>& m_caps;
  const std::vector<std::int64_t>& m_activations;
  std::vector<std::vector<Edge>> m_after, m_before;  ///< without moves, by node
  std::vector<std::vector<std::uint32_t>> m_lists;   ///< the nodes of each rank
  std::vector<std::size_t> m_place;                  ///< the place of a node in its list
  std::vector<std::int64_t> m_kept;                  ///< activations of the rank before a node
  std::vector<Time> m_head, m_tail;  ///< the start, and the time from the end to the makespan
  std::vector<std::uint32_t> m_missing, m_sequence;
  std::vector<std::size_t> m_next, m_waiting;
  std::vector<Tabu> m_tabu;
  Swap m_swap;
  Time m_makespan = {};
  std::uint32_t m_last = nobody;
  std::uint64_t m_state = 0x9e3779b97f4a7c15u;
};

}  // namespace heddle::inline v0::plan::impl
