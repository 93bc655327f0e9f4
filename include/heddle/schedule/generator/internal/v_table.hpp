// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// VTable: a table of the computation of every rank of a V in each slot. It starts as a repeated
/// passage of the microbatches. squeeze() or reorder_ends() then closes the gaps at its two ends.
/// The definitions of v_half() and v_min() use it, and plan::coordinate() uses it for many
/// passages.

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

#include <heddle/core/index.hpp>
#include <heddle/schedule/generator/internal/v_ends.hpp>
#include <heddle/schedule/order/orders.hpp>

namespace heddle::inline v0::schedule::impl {

/// The passage of a microbatch through the ranks of a V, in slots. A slot is the time of one F, I
/// or W. The next microbatch follows six slots later.
struct VPassage {
  /// Slots from one rank to the next, for the four legs in order: the forward to the fold and from
  /// it, then the backward to the fold and from it.
  std::array<std::size_t, 4> steps;
  std::array<std::size_t, 3> turns;  ///< slots from the end of a leg to the next leg
  /// From this rank on, the legs away from rank 0 have steps of `after_bend`.
  std::size_t bend = static_cast<std::size_t>(-1);
  std::size_t after_bend = 1;

  /// Returns the slots of the four legs on a rank. The last leg ends on rank 0.
  [[nodiscard]] constexpr std::array<std::size_t, 4> slots(std::size_t ranks,
                                                           std::size_t rank) const {
    std::array<std::size_t, 4> result{};
    std::size_t begin = 0;
    for (std::size_t leg = 0; leg < 4; ++leg) {
      const bool away = leg % 2 == 0;
      const auto distance = [&](std::size_t hops) {
        if (!away || hops <= bend) return steps[leg] * hops;
        return steps[leg] * bend + after_bend * (hops - bend);
      };
      result[leg] = begin + distance(away ? rank : ranks - 1 - rank);
      begin += distance(ranks - 1) + (leg < 3 ? turns[leg] : 0);
    }
    return result;
  }
};

/// Returns the passage of V-half. With steps of 2 up the ranks, two legs would need the same slot
/// if the ranks are even, so the far turn is longer there.
constexpr VPassage v_half_passage(std::size_t ranks) {
  return {{2, 1, 2, 1}, {1, ranks % 2 == 0 ? std::size_t{4} : 1, 2}};
}
/// Returns the passage of V-min. With steps of 1, two legs would need the same slot if the ranks
/// are a multiple of 3, so the far turn is longer there.
constexpr VPassage v_min_passage(std::size_t ranks) {
  return {{1, 1, 1, 1}, {1, ranks % 3 == 0 ? std::size_t{3} : 1, 1}};
}

/// A table of the computation of every rank of a V in each slot. The near stage of a rank is its
/// stage before the fold, and the far stage is its stage behind the fold. The k-th W of a rank
/// belongs to its k-th I.
class VTable {
 public:
  /// Fills the slots of `passage` and puts every W into the first gap after its I. No two slots of
  /// a rank may coincide.
  VTable(std::size_t ranks, std::size_t microbatches, const VPassage& passage)
      : m_microbatches(microbatches), m_cells(ranks), m_at(ranks), m_kept(ranks) {
    for (std::size_t rank = 0; rank < ranks; ++rank) {
      const auto slots = passage.slots(ranks, rank);
      for (std::size_t leg = 0; leg < 4; ++leg)
        for (std::size_t item = 0; item < microbatches; ++item)
          put(rank, slots[leg] + 6 * item, leg);
    }
    put_weights();
    read_cells();
    m_cap = largest_kept();
  }

  /// Closes the gaps at the two ends of the table. The first end lasts until the first microbatch
  /// is back on rank 0, and the second begins after the last microbatch has started there. Between
  /// them the passage repeats. The computations of both ends move to the earliest gaps. Then every
  /// I of the second end may pass the W before it, and this W takes the gap that is left. No rank
  /// keeps more activations than the maximum over all ranks in the passage, or than `cap` if that
  /// is more.
  void squeeze(std::size_t cap = 0) {
    m_cap = std::max(m_cap, cap);
    const std::size_t back = m_at[0][near_input].front();
    const std::size_t last = m_at[0][near_forward].back();
    move_up([&](std::size_t, std::size_t slot) { return slot < back || slot > last; });
    (void)settle();
    for (auto& cells : m_cells) std::ranges::replace(cells, weights, idle);
    m_gaps_are_weights = true;
    read_cells();
    const std::size_t end = m_at[0][near_forward].back();
    move_up([&](std::size_t leg, std::size_t slot) { return is_input(leg) && slot > end; });
    put_weights();
  }

  /// Keeps the first `count` microbatches and orders both ends as Qi et al. do. The forwards of the
  /// first end take the activations that the passage keeps as early as possible. The I of the
  /// second end follow each other without waiting. Every computation then moves to the earliest gap
  /// that leaves its rank within the maximum over all ranks. This needs at least 2 P microbatches
  /// before. Returns false if there is no such order.
  [[nodiscard]] bool reorder_ends(std::size_t count) {
    const std::size_t ranks = m_cells.size();
    const auto each = [&](const auto& reorder) {
      for (std::size_t rank = 0; rank < ranks; ++rank)
        if (!reorder(VCells{ranks, rank, m_microbatches, m_cells[rank]})) return false;
      return settle();
    };
    if (!settle()) return false;
    const std::size_t most = std::min(largest_kept(), 2 * ranks);
    if (!each([&](const VCells& cells) { return cells.reorder_begin(most), true; })) return false;
    if (!each([&](const VCells& cells) { return cells.keep(count), true; })) return false;
    m_microbatches = count;
    m_cap = largest_kept();
    const std::size_t fold = m_at[0][far_forward].back();
    if (!each([&](const VCells& cells) { return cells.reorder_end(m_cap, fold); })) return false;
    move_up([](std::size_t, std::size_t) { return true; });
    return true;
  }

  /// Returns the most activations that a rank may keep: those of the passage, or the cap of
  /// squeeze().
  [[nodiscard]] std::size_t cap() const { return m_cap; }

  /// Returns the lists of all ranks.
  [[nodiscard]] std::vector<std::vector<Order>> lists() const {
    std::vector<std::vector<Order>> result(m_cells.size());
    for (std::size_t rank = 0; rank < m_cells.size(); ++rank) {
      const std::array stages = {Stage{rank}, Stage{2 * m_cells.size() - 1 - rank}};
      std::vector<Order>& list = result[rank];
      std::vector<Order> owed;
      std::array<std::size_t, 5> next = {};
      list.reserve(6 * m_microbatches);
      for (const std::uint8_t cell : m_cells[rank]) {
        if (cell == idle) continue;
        const std::size_t item = next[cell]++;
        if (cell == weights) {
          list.push_back(owed[item]);
          continue;
        }
        const bool far = cell == far_forward || cell == far_input;
        const Kind kind = is_input(cell) ? Kind::backward_input : Kind::forward;
        list.push_back({kind, stages[far], Item{item}});
        if (is_input(cell)) owed.push_back({Kind::backward_weight, stages[far], Item{item}});
      }
    }
    return result;
  }

 private:
  static constexpr auto near_forward = VCells::near_forward, far_forward = VCells::far_forward,
                        far_input = VCells::far_input, near_input = VCells::near_input,
                        weights = VCells::weights, idle = VCells::idle;

  /// The state of a rank at the end of a slot.
  struct Kept {
    std::size_t live = 0;  ///< live activations
    std::size_t owed = 0;  ///< number of I without their W so far
    friend bool operator==(const Kept&, const Kept&) = default;
  };

  static bool upwards(std::size_t leg) { return leg == near_forward || leg == far_input; }
  static bool is_input(std::size_t leg) { return VCells::is_input(leg); }

  void put(std::size_t rank, std::size_t slot, std::size_t leg) {
    auto& cells = m_cells[rank];
    if (cells.size() <= slot) cells.resize(slot + 1, idle);
    cells[slot] = static_cast<std::uint8_t>(leg);
  }

  void put_weights() {
    for (auto& cells : m_cells) {
      std::size_t owed = 0;
      for (std::uint8_t& cell : cells) {
        if (is_input(cell)) ++owed;
        if (cell != idle || owed == 0) continue;
        cell = weights;
        --owed;
      }
      cells.insert(cells.end(), owed, weights);
    }
  }

  /// Computes `m_at` and `m_kept` from the cells.
  void read_cells() {
    for (std::size_t rank = 0; rank < m_cells.size(); ++rank) {
      for (auto& slots : m_at[rank]) slots.clear();
      for (std::size_t slot = 0; slot < m_cells[rank].size(); ++slot)
        if (m_cells[rank][slot] != idle) m_at[rank][m_cells[rank][slot]].push_back(slot);
      m_kept[rank].assign(m_cells[rank].size(), {});
      update_kept(rank, 0, m_cells[rank].size());
    }
  }

  [[nodiscard]] std::size_t largest_kept() const {
    std::size_t most = 0;
    for (const auto& kept : m_kept)
      for (const Kept& each : kept) most = std::max(most, each.live);
    return most;
  }

  [[nodiscard]] Kept before(std::size_t rank, std::size_t slot) const {
    return slot == 0 ? Kept{} : m_kept[rank][slot - 1];
  }
  [[nodiscard]] Kept after(Kept kept, std::uint8_t cell) const {
    if (cell == near_forward || cell == far_forward) ++kept.live;
    if (is_input(cell)) ++kept.owed;
    if (cell == weights || (cell == idle && m_gaps_are_weights && kept.owed > 0)) {
      --kept.live;
      --kept.owed;
    }
    return kept;
  }
  /// Returns whether the rank stays within the cap from slot `from` to slot `to`, after a cell has
  /// moved from `to` to `from`. Behind `to` the rank keeps no more than before: the state is the
  /// same, or a W is earlier.
  [[nodiscard]] bool fits(std::size_t rank, std::size_t from, std::size_t to) const {
    Kept kept = before(rank, from);
    for (std::size_t slot = from; slot <= to; ++slot) {
      kept = after(kept, m_cells[rank][slot]);
      if (kept.live > m_cap) return false;
    }
    return true;
  }
  void update_kept(std::size_t rank, std::size_t from, std::size_t to) {
    Kept kept = before(rank, from);
    for (std::size_t slot = from; slot < m_cells[rank].size(); ++slot) {
      kept = after(kept, m_cells[rank][slot]);
      if (slot > to && kept == m_kept[rank][slot]) break;
      m_kept[rank][slot] = kept;
    }
  }

  /// Calls `visit(rank, slot, leg, item)` for every cell, by slots and then by ranks. `visit` may
  /// move the cell to an earlier slot.
  template <class Visit>
  void for_each_cell(const Visit& visit) {
    std::vector<std::array<std::size_t, 5>> next(m_cells.size());
    std::size_t end = 0;
    for (const auto& cells : m_cells) end = std::max(end, cells.size());
    for (std::size_t slot = 0; slot < end; ++slot)
      for (std::size_t rank = 0; rank < m_cells.size(); ++rank) {
        if (slot >= m_cells[rank].size() || m_cells[rank][slot] == idle) continue;
        const std::size_t leg = m_cells[rank][slot];
        visit(rank, slot, leg, next[rank][leg]++);
      }
  }

  /// Returns the first slot after everything for which a cell waits. `inputs` are the slots of the
  /// I of its rank so far.
  [[nodiscard]] std::size_t earliest(std::size_t rank, std::size_t leg, std::size_t item,
                                     const std::vector<std::size_t>& inputs) const {
    std::size_t first = item > 0 ? m_at[rank][leg][item - 1] + 1 : 0;
    const auto wait = [&](std::size_t other) { first = std::max(first, other + 1); };
    if (leg == weights) {
      wait(inputs[item]);
      return first;
    }
    if (leg != near_forward) wait(m_at[rank][leg - 1][item]);
    if (upwards(leg) && rank > 0) wait(m_at[rank - 1][leg][item]);
    if (!upwards(leg) && rank + 1 < m_cells.size()) wait(m_at[rank + 1][leg][item]);
    return first;
  }

  /// Moves every cell for which `may(leg, slot)` holds to the earliest gap that leaves its rank
  /// within the cap.
  template <class May>
  void move_up(const May& may) {
    std::vector<std::vector<std::size_t>> inputs(m_cells.size());
    for_each_cell([&](std::size_t rank, std::size_t slot, std::size_t leg, std::size_t item) {
      auto& cells = m_cells[rank];
      std::size_t& place = m_at[rank][leg][item];
      if (may(leg, slot)) {
        for (std::size_t gap = earliest(rank, leg, item, inputs[rank]); gap < slot; ++gap) {
          if (cells[gap] != idle) continue;
          std::swap(cells[gap], cells[slot]);
          if (fits(rank, gap, slot)) {
            place = gap;
            update_kept(rank, gap, slot);
            break;
          }
          std::swap(cells[gap], cells[slot]);
        }
      }
      if (is_input(leg)) inputs[rank].insert(std::ranges::upper_bound(inputs[rank], place), place);
    });
  }

  /// Starts every computation as soon as its inputs exist, in the present order of its rank.
  /// Returns false if the computations wait for each other in a cycle.
  [[nodiscard]] bool settle() {
    const std::size_t ranks = m_cells.size();
    std::vector<std::vector<std::uint8_t>> settled(ranks);
    std::vector<std::vector<std::size_t>> inputs(ranks);
    std::vector<std::size_t> head(ranks, 0);
    for (auto& legs : m_at)
      for (auto& slots : legs) slots.clear();
    const auto exists = [&](std::size_t rank, std::size_t leg, std::size_t item) {
      return item < m_at[rank][leg].size();
    };
    const auto ready = [&](std::size_t rank, std::size_t leg, std::size_t item) {
      if (leg == weights) return item < inputs[rank].size();
      if (leg != near_forward && !exists(rank, leg - 1, item)) return false;
      if (upwards(leg)) return rank == 0 || exists(rank - 1, leg, item);
      return rank + 1 == ranks || exists(rank + 1, leg, item);
    };
    for (bool any = true; any;) {
      any = false;
      for (std::size_t rank = 0; rank < ranks; ++rank)
        for (const auto& cells = m_cells[rank]; head[rank] < cells.size(); ++head[rank]) {
          const std::uint8_t leg = cells[head[rank]];
          if (leg == idle) continue;
          const std::size_t item = m_at[rank][leg].size();
          if (!ready(rank, leg, item)) break;
          const std::size_t slot =
              std::max(settled[rank].size(), earliest(rank, leg, item, inputs[rank]));
          m_at[rank][leg].push_back(slot);
          settled[rank].resize(slot, idle);
          settled[rank].push_back(leg);
          if (is_input(leg)) inputs[rank].push_back(slot);
          any = true;
        }
    }
    for (std::size_t rank = 0; rank < ranks; ++rank)
      if (head[rank] < m_cells[rank].size()) return false;
    m_cells = std::move(settled);
    read_cells();
    return true;
  }

  std::size_t m_microbatches;
  std::size_t m_cap = 0;  ///< largest number of live activations on a rank
  bool m_gaps_are_weights = false;
  std::vector<std::vector<std::uint8_t>> m_cells;             ///< content, per rank and slot
  std::vector<std::array<std::vector<std::size_t>, 5>> m_at;  ///< slot, per rank, leg and item
  std::vector<std::vector<Kept>> m_kept;                      ///< state, per rank and slot
};

}  // namespace heddle::inline v0::schedule::impl
