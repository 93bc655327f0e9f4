// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// SequencePacking: sequences of one microbatch to the groups of the best composition.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include <heddle/core/units.hpp>
#include <heddle/systems/flexsp/sequence_costs.hpp>

namespace heddle::inline v0::systems::impl {

/// The assignment of the sequences of one microbatch to groups.
class SequencePacking {
 public:
  /// Sequences in groups, by their places in falling order of length.
  struct Packed {
    std::vector<std::size_t> degrees;   ///< by group, as positions in the costs
    std::vector<std::size_t> group_of;  ///< by sequence
    std::vector<Seconds> times;         ///< by group, 0 if it is empty
    std::vector<std::int64_t> tokens;   ///< by group
    Seconds time = 0;                   ///< the largest
  };

  /// Packs `lengths`, which are in falling order. Both arguments outlive the object.
  SequencePacking(const SequenceCosts& costs, std::span<const std::int64_t> lengths)
      : m_costs(costs), m_lengths(lengths) {
    for (const DegreeCost& cost : costs.degrees) {
      m_rooms.push_back(cost.degree * costs.tokens_per_rank);
      for (const std::int64_t length : lengths) {
        const auto tokens = static_cast<double>(length);
        m_times.push_back((cost.per_square * tokens + cost.per_token) * tokens);
      }
    }
  }

  /// The best of all compositions, each a list of places in the costs; none if the sequences fit in
  /// none of them, or none ends before `limit`. Visits at most `nodes` nodes of search trees.
  [[nodiscard]] std::optional<Packed> best(
      const std::vector<std::vector<std::size_t>>& compositions, Seconds limit,
      std::int64_t nodes) const {
    // Compositions by their lower bounds: none behind a bound that is not below the best can win.
    std::vector<std::pair<Seconds, std::size_t>> order;
    for (std::size_t c = 0; c < compositions.size(); ++c)
      order.emplace_back(bound(compositions[c]), c);
    std::ranges::sort(order);
    // A packing that is slower than the best one by more is not refined.
    const double patience = size() > searched ? 1.05 : 1.25;
    double tokens = 0;
    for (const std::int64_t length : m_lengths) tokens += static_cast<double>(length);
    const bool tight = size() <= searched ||
                       tokens > 0.75 * m_costs.ranks * static_cast<double>(m_costs.tokens_per_rank);
    std::optional<Packed> best;
    for (const auto& [least, c] : order) {
      if (least >= limit) break;
      for (const Rule rule : {Rule::soonest, Rule::fullest}) {
        if (rule == Rule::fullest && !tight) break;
        std::optional<Packed> found = pack(compositions[c], rule, patience * limit);
        if (!found) continue;
        refine(*found);
        if (found->time >= limit) continue;
        limit = found->time;
        best = std::move(found);
      }
    }
    if (size() > searched) return best;
    // The unused part of a composition's share is left for the others.
    for (std::size_t c = 0; c < order.size() && order[c].first < limit; ++c) {
      std::int64_t share = nodes / static_cast<std::int64_t>(order.size() - c);
      nodes -= share;
      Packed packed = empty(compositions[order[c].second]);
      search(packed, 0, limit, share, best);
      nodes += share;
    }
    return best;
  }

 private:
  /// The rule that selects a group with room for a sequence: the group that ends first with it, or
  /// the one with the least room left, which fits more if memory is scarce.
  enum class Rule : std::uint8_t { soonest, fullest };

  static constexpr Seconds infinite = std::numeric_limits<Seconds>::infinity();
  static constexpr std::size_t none = ~std::size_t{0};
  /// A change must make the slowest group faster by this share.
  static constexpr double worthwhile = 1e-3;
  /// A search changes the placement of at most so many of the shortest sequences.
  static constexpr std::size_t searched = 32;

  [[nodiscard]] std::size_t size() const { return m_lengths.size(); }
  /// The time of sequence `i` at a degree, and of a group that is empty before it.
  [[nodiscard]] Seconds time(std::size_t degree, std::size_t i) const {
    return m_times[degree * m_lengths.size() + i];
  }
  [[nodiscard]] Seconds with(const Packed& packed, std::size_t g, std::size_t i) const {
    const std::size_t degree = packed.degrees[g];
    return (packed.tokens[g] == 0 ? m_costs.degrees[degree].fixed : packed.times[g]) +
           time(degree, i);
  }

  /// No packing in these groups ends before: the longest sequence in its best group, and the work
  /// of all sequences, each at its cheapest degree, divided among all ranks.
  [[nodiscard]] Seconds bound(const std::vector<std::size_t>& groups) const {
    std::vector<std::size_t> present;
    Seconds fixed = infinite;
    for (std::size_t g = 0; g < groups.size(); ++g) {
      if (g > 0 && groups[g] == groups[g - 1]) continue;
      present.push_back(groups[g]);
      fixed = std::min(fixed, m_costs.degrees[groups[g]].fixed);
    }
    Seconds work = 0, alone = 0;
    for (std::size_t i = 0; i < size(); ++i) {
      Seconds least = infinite;
      for (const std::size_t degree : present) {
        if (m_lengths[i] > m_rooms[degree]) continue;
        least = std::min(least, m_costs.degrees[degree].degree * time(degree, i));
      }
      work += least;
    }
    alone = infinite;
    for (const std::size_t degree : present)
      if (m_lengths[0] <= m_rooms[degree])
        alone = std::min(alone, m_costs.degrees[degree].fixed + time(degree, 0));
    // Rounding must not exclude the best one.
    return (1 - 1e-9) * std::max(alone, fixed + work / m_costs.ranks);
  }

  [[nodiscard]] Packed empty(const std::vector<std::size_t>& groups) const {
    return {groups, std::vector<std::size_t>(size()), std::vector<Seconds>(groups.size(), 0),
            std::vector<std::int64_t>(groups.size(), 0), 0};
  }

  /// Places the sequences from `i` on in all ways that end before `limit`, the group that ends
  /// first first, until `nodes` are used up. Lowers `limit` with what it finds and keeps that in
  /// `best`.
  void search(Packed& packed, std::size_t i, Seconds& limit, std::int64_t& nodes,
              std::optional<Packed>& best) const {
    if (i == size()) {
      limit = packed.time;
      best = packed;
      return;
    }
    std::vector<std::pair<Seconds, std::size_t>> ways;
    for (std::size_t g = 0; g < packed.degrees.size(); ++g) {
      if (packed.tokens[g] + m_lengths[i] > m_rooms[packed.degrees[g]]) continue;
      // One of several equal neighbours is enough.
      if (g > 0 && packed.degrees[g] == packed.degrees[g - 1] &&
          packed.tokens[g] == packed.tokens[g - 1] && packed.times[g] == packed.times[g - 1])
        continue;
      ways.emplace_back(with(packed, g, i), g);
    }
    std::ranges::sort(ways);
    const Seconds before = packed.time;
    for (const auto& [end, g] : ways) {
      if (end >= limit || --nodes < 0) return;
      const Seconds time_before = packed.times[g];
      packed.group_of[i] = g;
      packed.times[g] = end;
      packed.tokens[g] += m_lengths[i];
      packed.time = std::max(before, end);
      search(packed, i + 1, limit, nodes, best);
      packed.times[g] = time_before;
      packed.tokens[g] -= m_lengths[i];
      packed.time = before;
      if (before >= limit) return;
    }
  }

  /// Longest first, each to a group by `rule`; none if one has no room, or a group takes longer
  /// than `limit`.
  [[nodiscard]] std::optional<Packed> pack(const std::vector<std::size_t>& groups, Rule rule,
                                           Seconds limit) const {
    Packed packed = empty(groups);
    for (std::size_t i = 0; i < size(); ++i) {
      std::size_t chosen = none;
      Seconds end = limit;
      std::int64_t left = std::numeric_limits<std::int64_t>::max();
      for (std::size_t g = 0; g < groups.size(); ++g) {
        const std::int64_t room = m_rooms[groups[g]] - packed.tokens[g] - m_lengths[i];
        if (room < 0) continue;
        const Seconds here = with(packed, g, i);
        if (rule == Rule::soonest ? here >= end : (here >= limit || room >= left)) continue;
        chosen = g;
        end = here;
        left = room;
      }
      if (chosen == none) return {};
      packed.group_of[i] = chosen;
      packed.tokens[chosen] += m_lengths[i];
      packed.times[chosen] = end;
      packed.time = std::max(packed.time, end);
    }
    return packed;
  }

  /// A change: sequence `i` of the slowest group to `group`, and `j` back, if there is one.
  struct Change {
    std::size_t i = none, group = none, j = none;
    Seconds time = 0;  ///< the later end of the two groups
  };

  /// Makes the best change of the slowest group while that ends earlier.
  void refine(Packed& packed) const {
    for (std::size_t left = 4 * size(); left > 0; --left) {
      const auto slowest =
          static_cast<std::size_t>(std::ranges::max_element(packed.times) - packed.times.begin());
      const Change change = best_change(packed, slowest);
      if (change.i == none) break;
      packed.group_of[change.i] = change.group;
      if (change.j != none) packed.group_of[change.j] = slowest;
      for (const std::size_t g : {slowest, change.group}) count(packed, g);
      packed.time = *std::ranges::max_element(packed.times);
    }
  }

  /// Adds group `g` up again, so that no rounding accumulates.
  void count(Packed& packed, std::size_t g) const {
    packed.tokens[g] = 0;
    packed.times[g] = 0;
    for (std::size_t i = 0; i < size(); ++i) {
      if (packed.group_of[i] != g) continue;
      packed.times[g] = with(packed, g, i);
      packed.tokens[g] += m_lengths[i];
    }
  }

  [[nodiscard]] Change best_change(const Packed& packed, std::size_t slowest) const {
    Change best;
    best.time = (1 - worthwhile) * packed.time;
    const std::size_t here = packed.degrees[slowest];
    for (std::size_t i = 0; i < size(); ++i) {
      if (packed.group_of[i] != slowest) continue;
      const Seconds without = packed.times[slowest] - time(here, i);
      for (std::size_t g = 0; g < packed.degrees.size(); ++g)
        if (g != slowest && packed.tokens[g] + m_lengths[i] <= m_rooms[packed.degrees[g]])
          keep(best, {i, g, none, std::max(without, with(packed, g, i))});
      // A longer one gains nothing here.
      for (std::size_t j = i + 1; j < size(); ++j) {
        const std::size_t g = packed.group_of[j];
        if (g == slowest) continue;
        const std::size_t there = packed.degrees[g];
        const std::int64_t more = m_lengths[i] - m_lengths[j];
        if (packed.tokens[g] + more > m_rooms[there]) continue;
        const Seconds changed = packed.times[g] - time(there, j) + time(there, i);
        keep(best, {i, g, j, std::max(without + time(here, j), changed)});
      }
    }
    return best;
  }
  static void keep(Change& best, const Change& other) {
    if (other.time < best.time) best = other;
  }

  const SequenceCosts& m_costs;
  std::span<const std::int64_t> m_lengths;
  std::vector<std::int64_t> m_rooms;  ///< by degree: tokens
  std::vector<Seconds> m_times;       ///< by degree and sequence
};

}  // namespace heddle::inline v0::systems::impl
