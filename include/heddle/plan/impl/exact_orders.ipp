// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// Definitions of exact_orders.hpp.

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include <heddle/core/index.hpp>
#include <heddle/core/linkage.hpp>
#include <heddle/plan/impl/exact_orders.hpp>
#include <heddle/schedule/action.hpp>
#include <heddle/schedule/order/orders.hpp>

namespace heddle::inline v0::plan::impl {

/// A depth-first search in the order of time. The rank that can start first decides: it starts a
/// computation whose input has arrived, or it waits for the next arrival.
class ExactSearch {
 public:
  ExactSearch(const SmallChain& chain, double best, std::int64_t branches)
      : m_chain(chain), m_best(best), m_left(branches), m_lists(chain.ranks) {
    const std::size_t stages = chain.stages.size();
    m_kinds = chain.split ? 3 : 2;
    m_count.assign(3 * stages, 0);
    m_there.assign(3 * stages, std::vector<double>(chain.items.size(), never));
    m_free.assign(chain.ranks, 0);
    m_kept.assign(chain.ranks, 0);
    m_waits.assign(chain.ranks, -1);
    m_tail.assign(3 * stages, 0);
    m_of.resize(chain.ranks);
    for (std::size_t s = 0; s < stages; ++s)
      for (std::size_t kind = 0; kind < m_kinds; ++kind)
        m_of[chain.stages[s].rank].push_back(3 * s + kind);
    // The rest of a microbatch behind each computation.
    for (std::size_t s = 0; s < stages; ++s) {
      const double weights = chain.split ? chain.stages[s].takes[2] : 0;
      m_tail[3 * s + 1] = weights;
      if (s > 0)
        m_tail[3 * s + 1] = std::max(
            weights, chain.stages[s - 1].arrives[1] + takes(3 * s - 2) + m_tail[3 * s - 2]);
    }
    for (std::size_t s = stages; s-- > 0;) {
      const std::size_t next = next_of(3 * s);
      m_tail[3 * s] = arrives(next) + takes(next) + m_tail[next];
    }
    for (auto& types : m_of)
      std::ranges::stable_sort(types, [&](auto a, auto b) { return m_tail[b] < m_tail[a]; });
    std::ranges::fill(m_there[0], 0);
  }

  ExactOrders run() {
    branch();
    return {std::move(m_shortest), m_left > 0};
  }

 private:
  static constexpr double never = std::numeric_limits<double>::infinity();
  static constexpr std::size_t nothing = static_cast<std::size_t>(-1);

  [[nodiscard]] double takes(std::size_t type) const {
    return m_chain.stages[type / 3].takes[type % 3];
  }
  /// Returns the computation after an F or an I in the way of a microbatch.
  [[nodiscard]] std::size_t next_of(std::size_t type) const {
    const std::size_t stage = type / 3;
    if (type % 3 == 0) return stage + 1 < m_chain.stages.size() ? type + 3 : type + 1;
    return stage > 0 ? type - 3 : nothing;
  }
  /// Returns the delay of the input of an F or I.
  [[nodiscard]] double arrives(std::size_t type) const {
    return m_chain.stages[type / 3].arrives[type % 3];
  }
  [[nodiscard]] bool done(std::size_t type) const { return m_count[type] == m_chain.items.size(); }
  [[nodiscard]] double there(std::size_t type) const { return m_there[type][m_count[type]]; }
  [[nodiscard]] bool has_room(std::size_t type) const {
    const auto& part = m_chain.stages[type / 3];
    return type % 3 != 0 || m_chain.caps.empty() ||
           m_kept[part.rank] + part.keeps <= m_chain.caps[part.rank];
  }
  /// Returns true if the rank waited although this input had arrived.
  [[nodiscard]] bool passed_over(std::size_t type) const {
    return there(type) <= m_waits[m_chain.stages[type / 3].rank];
  }

  /// Returns the earliest start of a computation of a rank, or `never`.
  [[nodiscard]] double decides(std::size_t rank) const {
    double first = never;
    for (const std::size_t type : m_of[rank])
      if (!done(type) && there(type) < never && has_room(type) && !passed_over(type))
        first = std::min(first, std::max(m_free[rank], there(type)));
    return first;
  }

  /// Returns true if all completions are at least as long as the best.
  [[nodiscard]] bool hopeless() {
    m_start.assign(m_count.size(), never);
    const auto start = [&](std::size_t type, std::size_t before) {
      if (done(type)) return;
      double input = there(type);
      if (input == never)
        input = m_start[before] + takes(before) + (type % 3 < 2 ? arrives(type) : 0);
      m_start[type] = std::max(m_free[m_chain.stages[type / 3].rank], input);
    };
    const std::size_t stages = m_chain.stages.size();
    for (std::size_t s = 0; s < stages; ++s) start(3 * s, s > 0 ? 3 * s - 3 : 0);
    for (std::size_t s = stages; s-- > 0;) start(3 * s + 1, s + 1 < stages ? 3 * s + 4 : 3 * s);
    for (std::size_t s = 0; m_chain.split && s < stages; ++s) start(3 * s + 2, 3 * s + 1);
    for (std::size_t rank = 0; rank < m_of.size(); ++rank) {
      double work = 0;
      double first = never;
      for (const std::size_t type : m_of[rank]) {
        if (done(type)) continue;
        const double mine = takes(type) * static_cast<double>(m_chain.items.size() - m_count[type]);
        work += mine;
        first = std::min(first, m_start[type]);
        if (std::max(first + work, m_start[type] + mine) + m_tail[type] >= m_best) return true;
      }
    }
    return false;
  }

  /// Returns true if a state with the same computations, none of them later, was searched before.
  [[nodiscard]] bool dominated(double now) {
    std::string key;
    std::vector<double> times;
    for (std::size_t type = 0; type < m_count.size(); ++type) {
      key.push_back(static_cast<char>(m_count[type]));
      if (type % 3 >= m_kinds || done(type)) continue;
      key.push_back(passed_over(type) ? '\1' : '\0');
      for (std::size_t item = m_count[type]; item < m_chain.items.size(); ++item) {
        if (m_there[type][item] == never) break;
        times.push_back(std::max(now, m_there[type][item]));
      }
    }
    for (const double free : m_free) times.push_back(std::max(now, free));
    auto& before = m_seen[key];
    for (const auto& other : before)
      if (std::ranges::equal(other, times, std::ranges::less_equal())) return true;
    constexpr std::size_t most = 16;
    if (before.size() < most) before.push_back(std::move(times));
    return false;
  }

  void branch() {
    if (m_left <= 0) return;
    --m_left;
    std::size_t rank = 0;
    double now = never;
    for (std::size_t r = 0; r < m_of.size(); ++r)
      if (const double at = decides(r); at < now) {
        now = at;
        rank = r;
      }
    if (now == never) {
      finish();
      return;
    }
    if (hopeless() || dominated(now)) return;
    // The computation with the shortest rest is the deepest, so it goes first.
    for (std::size_t i = m_of[rank].size(); i-- > 0;) {
      const std::size_t type = m_of[rank][i];
      if (type % 3 == 2) continue;
      try_start(rank, type, now);
    }
    for (const std::size_t type : m_of[rank])
      if (type % 3 == 2) try_start(rank, type, now);
    const double waited = m_waits[rank];
    m_waits[rank] = now;
    branch();
    m_waits[rank] = waited;
  }

  void try_start(std::size_t rank, std::size_t type, double now) {
    if (done(type) || there(type) > now || !has_room(type) || passed_over(type)) return;
    const double waited = m_waits[rank];
    if (waited >= 0 && could_have_run(rank, now)) return;
    const double free = m_free[rank];
    const auto& part = m_chain.stages[type / 3];
    const std::size_t item = m_count[type]++;
    const double end = now + takes(type);
    m_free[rank] = end;
    m_waits[rank] = -1;
    const std::int64_t kept = m_kept[rank];
    if (type % 3 == 0) m_kept[rank] += part.keeps;
    if (type % 3 + 1 == m_kinds) m_kept[rank] -= part.keeps;
    const std::size_t next = type % 3 < 2 ? next_of(type) : nothing;
    if (next != nothing) m_there[next][item] = end + arrives(next);
    if (type % 3 == 1 && m_chain.split) m_there[type + 1][item] = end;
    m_lists[rank].push_back({type, item});
    branch();
    m_lists[rank].pop_back();
    if (next != nothing) m_there[next][item] = never;
    if (type % 3 == 1 && m_chain.split) m_there[type + 1][item] = never;
    m_kept[rank] = kept;
    m_free[rank] = free;
    m_waits[rank] = waited;
    --m_count[type];
  }

  /// Returns true if the rank could have run something while it waited until now, without delaying
  /// anything: then another branch is as good.
  [[nodiscard]] bool could_have_run(std::size_t rank, double now) const {
    return std::ranges::any_of(m_of[rank], [&](std::size_t type) {
      return !done(type) && (type % 3 != 0 || m_chain.caps.empty()) && there(type) < never &&
             std::max(m_free[rank], there(type)) + takes(type) <= now;
    });
  }

  void finish() {
    double last = 0;
    for (std::size_t type = 0; type < m_count.size(); ++type)
      if (type % 3 < m_kinds && !done(type)) return;  // a dead end under the cap
    for (const double free : m_free) last = std::max(last, free);
    if (last >= m_best) return;
    m_best = last;
    m_shortest.assign(m_lists.size(), {});
    for (std::size_t rank = 0; rank < m_lists.size(); ++rank)
      for (const auto& [type, item] : m_lists[rank]) {
        constexpr std::array split = {Kind::forward, Kind::backward_input, Kind::backward_weight};
        const Kind kind = m_kinds == 2 && type % 3 == 1 ? Kind::backward : split[type % 3];
        m_shortest[rank].push_back({kind, Stage{type / 3}, m_chain.items[item]});
      }
  }

  const SmallChain& m_chain;
  double m_best;
  std::int64_t m_left;
  std::size_t m_kinds = 2;
  std::vector<std::size_t> m_count;          ///< finished microbatches, by 3 * stage + kind
  std::vector<std::vector<double>> m_there;  ///< when each input arrives, by type and microbatch
  std::vector<double> m_free, m_waits;       ///< by rank; since when it waits, or -1
  std::vector<std::int64_t> m_kept;
  std::vector<double> m_tail, m_start;
  std::vector<std::vector<std::size_t>> m_of;  ///< the types of a rank, the longest rest first
  std::vector<std::vector<std::pair<std::size_t, std::size_t>>> m_lists;
  std::vector<std::vector<Order>> m_shortest;
  std::unordered_map<std::string, std::vector<std::vector<double>>> m_seen;
};

HEDDLE_INLINE ExactOrders exact_orders(const SmallChain& chain, double makespan,
                                       std::int64_t branches) {
  return ExactSearch(chain, makespan, branches).run();
}

}  // namespace heddle::inline v0::plan::impl
