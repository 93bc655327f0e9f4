// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// Definitions of repeated_orders.hpp.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <unordered_map>
#include <utility>
#include <vector>

#include <heddle/core/error.hpp>
#include <heddle/core/internal/function_ref.hpp>
#include <heddle/core/linkage.hpp>
#include <heddle/core/text.hpp>
#include <heddle/schedule/order/orders.hpp>
#include <heddle/simulate/internal/repeated_orders.hpp>

namespace heddle::inline v0::impl {

/// The search for repetitions in the list of one rank.
class RepetitionFinder {
 public:
  explicit RepetitionFinder(const std::vector<Order>& list) : m_list(list) {
    m_places.reserve(list.size());
    for (std::size_t i = 0; i < list.size(); ++i)
      m_places.emplace(key(list[i], static_cast<std::int64_t>(+list[i].item)), i);
  }

  std::vector<Repetition> run(std::int64_t shift) const {
    std::vector<Repetition> result;
    bool single = false;  // the last repetition has entries that do not repeat
    for (std::size_t i = 0; i < m_list.size();) {
      std::size_t length = 0;
      std::int64_t times = 1;
      std::int64_t by = shift;
      for (const std::int64_t each : {shift, -shift}) {
        if (times > 1) break;
        by = each;
        length = length_at(i, by);
        if (length > 0) times = 1 + static_cast<std::int64_t>(same_from(i, length, by) / length);
        if (times < least) times = 1;
      }
      if (times > 1) {
        Repetition& repetition = result.emplace_back(Repetition{{}, times, by});
        for (std::size_t e = i; e < i + length; ++e) repetition.entries.push_back(entry(e));
        i += length * static_cast<std::size_t>(times);
        single = false;
        continue;
      }
      if (!std::exchange(single, true)) result.emplace_back();
      do result.back().entries.push_back(entry(i));
      while (m_list[i++].fused && i < m_list.size());
    }
    return result;
  }

 private:
  static constexpr std::int64_t least = 3;  // repetitions

  [[nodiscard]] static std::uint64_t key(const Order& order, std::int64_t item) {
    return static_cast<std::uint64_t>(order.kind) << 60 |
           static_cast<std::uint64_t>(+order.stage) << 32 | static_cast<std::uint64_t>(item);
  }
  [[nodiscard]] RepeatedEntry entry(std::size_t i) const {
    const Order& order = m_list[i];
    return {order.kind, order.fused, order.stage.value, static_cast<std::int64_t>(+order.item)};
  }
  /// Returns whether entry `i` is at `place`, `by` microbatches later.
  [[nodiscard]] bool is_at(std::size_t i, std::size_t place, std::int64_t by) const {
    if (place >= m_list.size()) return false;
    const Order& a = m_list[i];
    const Order& b = m_list[place];
    return a.kind == b.kind && a.stage == b.stage && a.fused == b.fused &&
           static_cast<std::int64_t>(+a.item) + by == static_cast<std::int64_t>(+b.item);
  }
  /// Returns the number of entries from entry `i` to itself `by` microbatches later, or 0.
  [[nodiscard]] std::size_t length_at(std::size_t i, std::int64_t by) const {
    const std::int64_t item = static_cast<std::int64_t>(+m_list[i].item) + by;
    if (item < 0) return 0;
    const auto next = m_places.find(key(m_list[i], item));
    if (next == m_places.end() || next->second <= i) return 0;
    const std::size_t length = next->second - i;
    return is_at(i, i + 2 * length, 2 * by) && !m_list[i + length - 1].fused ? length : 0;
  }
  /// Returns the number of entries from entry `i` on that follow again `length` entries later.
  [[nodiscard]] std::size_t same_from(std::size_t i, std::size_t length, std::int64_t by) const {
    std::size_t same = 0;
    while (is_at(i + same, i + same + length, by)) ++same;
    return same;
  }

  const std::vector<Order>& m_list;
  std::unordered_map<std::uint64_t, std::size_t> m_places;
};

HEDDLE_INLINE RepeatedOrders repeated(const Orders& orders, std::int64_t shift) {
  RepeatedOrders result;
  for (const auto& list : orders.ranks) result.push_back(RepetitionFinder(list).run(shift));
  return result;
}

HEDDLE_INLINE std::optional<RepeatedOrders> continued(const RepeatedOrders& first,
                                                      const RepeatedOrders& second,
                                                      std::int64_t steps) {
  if (first.size() != second.size()) return {};
  RepeatedOrders result = first;
  for (std::size_t rank = 0; rank < first.size(); ++rank) {
    if (first[rank].size() != second[rank].size()) return {};
    for (std::size_t r = 0; r < first[rank].size(); ++r) {
      const Repetition& a = first[rank][r];
      const Repetition& b = second[rank][r];
      if (a.entries.size() != b.entries.size() || a.shift != b.shift || b.times < a.times)
        return {};
      result[rank][r].times += steps * (b.times - a.times);
      for (std::size_t e = 0; e < a.entries.size(); ++e) {
        RepeatedEntry expected = b.entries[e];
        expected.item = a.entries[e].item;
        if (expected != a.entries[e]) return {};
        result[rank][r].entries[e].item += steps * (b.entries[e].item - a.entries[e].item);
      }
    }
  }
  return result;
}

/// Returns the most ranks that have the same stage.
inline int most_copies(const Orders& orders) {
  std::map<std::uint32_t, std::set<std::size_t>> ranks;  // by stage
  for (std::size_t rank = 0; rank < orders.ranks.size(); ++rank)
    for (const Order& order : orders.ranks[rank]) ranks[order.stage.value].insert(rank);
  std::size_t most = 1;
  for (const auto& [stage, copies] : ranks) most = std::max(most, copies.size());
  return static_cast<int>(most);
}

HEDDLE_INLINE PeriodicOrders periodic_orders(FunctionRef<Orders(int)> orders_of, int microbatches) {
  // Returns the orders of the fewest microbatches, at least `least` of them if there are so many.
  const auto fewest_orders = [&](std::int64_t least) {
    for (std::int64_t fewest = least;; ++fewest) try {
        return orders_of(static_cast<int>(std::min<std::int64_t>(fewest, microbatches)));
      } catch (const infeasible&) {
        if (fewest >= microbatches) throw;
      }
  };
  const Orders any = fewest_orders(1);
  const auto ranks = static_cast<std::int64_t>(any.ranks.size());
  // With four microbatches a rank, every copy of a stage has some of them.
  const int copies = any.graph.replicas ? most_copies(fewest_orders(4 * ranks)) : 1;
  const std::int64_t longest = std::max<std::int64_t>(2 * ranks, 16);
  for (std::int64_t period = copies; period <= longest; period += copies) {
    const std::int64_t most = microbatches - 2 * ranks - 4 * period;
    if (most < 3 * period) break;
    const std::int64_t steps = most / period;
    const auto first = static_cast<int>(microbatches - steps * period);
    const auto after = [&](int more) { return first + more * static_cast<int>(period); };
    try {
      Orders sample = orders_of(first);
      const std::int64_t shift = period / copies;
      RepeatedOrders lists = repeated(sample, shift);
      const RepeatedOrders next = repeated(orders_of(after(1)), shift);
      if (continued(lists, next, 3) != repeated(orders_of(after(3)), shift)) continue;
      auto all = *continued(lists, next, steps);
      return {std::move(all), std::move(sample), std::move(lists), copies};
    } catch (const infeasible&) {  // there are no orders of one of these numbers
    }
  }
  constexpr std::int64_t most_entries = 1 << 20;
  if (ranks * microbatches > most_entries)
    throw infeasible({"heddle::simulate_periodic", "the orders have no period",
                      text("'", any.name, "' of ", ranks, " ranks; periods of 1 to ", longest,
                           " microbatches were tried"),
                      "use simulate(), or fewer microbatches"});
  Orders sample = orders_of(microbatches);
  RepeatedOrders lists = repeated(sample, 1);
  return {lists, std::move(sample), lists, copies};
}

}  // namespace heddle::inline v0::impl
