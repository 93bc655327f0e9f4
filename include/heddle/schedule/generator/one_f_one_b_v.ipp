// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// Definitions of one_f_one_b_v.hpp.

#include <algorithm>
#include <array>
#include <cstddef>
#include <vector>

#include <heddle/core/linkage.hpp>
#include <heddle/core/text.hpp>
#include <heddle/schedule/generator/impl/pipeline_shape.hpp>
#include <heddle/schedule/generator/one_f_one_b_v.hpp>
#include <heddle/schedule/order/stage_graph.hpp>
#include <heddle/schedule/order/weave.hpp>

namespace heddle::inline v0::schedule {

namespace impl {

/// The actions of all ranks of a V in time slots. A forward takes one slot and a backward two. The
/// four legs of a microbatch are the forward to the fold and from it, then the backward to the fold
/// and from it.
class FoldedSlots {
 public:
  FoldedSlots(std::size_t ranks, std::size_t microbatches)
      : m_ranks(ranks),
        m_microbatches(microbatches),
        m_cap(2 * (2 * ranks / 3 + 1)),
        m_begins(ranks),
        m_lanes(ranks),
        m_ends(4 * ranks * microbatches) {
    // Every third hop of a backward waits three slots, because two slots per hop and a period of
    // six would put two actions of a rank into the same slot.
    std::size_t now = 0;
    std::size_t hops = (2 * ranks + 1) % 3;
    for (std::size_t leg = 0; leg < 4; ++leg) {
      if (leg == 2 && ranks % 3 == 0) now += 3;
      for (std::size_t i = 0; i < ranks; ++i) {
        m_begins[leg % 2 == 0 ? i : ranks - 1 - i][leg] = now;
        now += length(leg);
        if (leg >= 2 && ++hops % 3 == 0) now += 3;
      }
    }
    m_slots = now + period * (microbatches - 1);
  }

  /// Moves every action of the repeated passage to the earliest gap, and returns the lists.
  std::vector<std::vector<Order>> lists() {
    for (std::size_t slot = 0; slot < m_slots; ++slot)
      for (std::size_t rank = 0; rank < m_ranks; ++rank)
        for (std::size_t leg = 0; leg < 4; ++leg) {
          const std::size_t begin = m_begins[rank][leg];
          if (slot < begin || (slot - begin) % period != 0) continue;
          const std::size_t item = (slot - begin) / period;
          if (item < m_microbatches) put(rank, leg, item, slot);
        }
    std::vector<std::vector<Order>> result(m_ranks);
    for (std::size_t rank = 0; rank < m_ranks; ++rank) {
      result[rank].reserve(4 * m_microbatches);
      for (const Order& cell : m_lanes[rank].cells)
        if (cell.kind != Kind::user && !cell.fused) result[rank].push_back(cell);
    }
    return result;
  }

 private:
  static constexpr std::size_t period = 6;  ///< slots from a microbatch to the next one
  /// The content of a free slot, and of the second slot of a backward.
  static constexpr Order free{.kind = Kind::user, .stage = {}, .item = {}},
      second{.kind = Kind::backward, .stage = {}, .item = {}, .fused = true};

  /// The slots of a rank so far.
  struct Lane {
    std::vector<Order> cells;       ///< the content of each slot
    std::vector<std::size_t> live;  ///< the live activations in each slot
    std::size_t last = 0;           ///< the live activations in all later slots
  };

  static std::size_t length(std::size_t leg) { return leg < 2 ? 1 : 2; }
  std::size_t& end(std::size_t rank, std::size_t leg, std::size_t item) {
    return m_ends[(item * 4 + leg) * m_ranks + rank];
  }

  /// Returns the first slot after everything for which an action waits.
  std::size_t earliest(std::size_t rank, std::size_t leg, std::size_t item) {
    const bool down = leg % 2 == 0;  // from rank 0 to the last rank
    std::size_t first = item > 0 ? end(rank, leg, item - 1) : 0;
    if (rank != (down ? 0 : m_ranks - 1))
      first = std::max(first, end(down ? rank - 1 : rank + 1, leg, item));
    else if (leg > 0)
      first = std::max(first, end(rank, leg - 1, item));
    return first;
  }

  /// Puts an action, whose place in the repeated passage is `slot`, into the earliest gap.
  void put(std::size_t rank, std::size_t leg, std::size_t item, std::size_t slot) {
    Lane& lane = m_lanes[rank];
    const std::size_t size = length(leg);
    lane.cells.resize(slot + 3, free);
    lane.live.resize(slot + 3, lane.last);
    std::size_t at = earliest(rank, leg, item);
    if (leg < 2)  // The activation is live from the forward on.
      for (std::size_t before = slot; before-- > at;)
        if (lane.live[before] >= m_cap) at = before + 1;
    const auto taken = [&](std::size_t i) { return lane.cells[i] != free; };
    while (taken(at) || taken(at + size - 1)) ++at;
    const bool far = leg == 1 || leg == 2;
    lane.cells[at] = {leg < 2 ? Kind::forward : Kind::backward,
                      Stage{far ? 2 * m_ranks - 1 - rank : rank}, Item{item}};
    if (size == 2) lane.cells[at + 1] = second;
    end(rank, leg, item) = at + size;
    if (leg < 2) {
      ++lane.last;
      for (std::size_t i = at; i < lane.live.size(); ++i) ++lane.live[i];
    } else {
      --lane.last;
      for (std::size_t i = at + 2; i < lane.live.size(); ++i) --lane.live[i];
    }
  }

  std::size_t m_ranks;
  std::size_t m_microbatches;
  std::size_t m_cap;    ///< largest number of live activations on a rank
  std::size_t m_slots;  ///< slots of the repeated passage
  std::vector<std::array<std::size_t, 4>> m_begins;  ///< slot of microbatch 0, per rank and leg
  std::vector<Lane> m_lanes;
  std::vector<std::size_t> m_ends;  ///< the slot after an action
};

}  // namespace impl

HEDDLE_INLINE Orders one_f_one_b_v(int ranks, int microbatches) {
  impl::check("heddle::schedule::one_f_one_b_v", ranks, 2, microbatches);
  impl::FoldedSlots slots(static_cast<std::size_t>(ranks), static_cast<std::size_t>(microbatches));
  return {text("1F1B-V P=", ranks, " M=", microbatches), slots.lists(),
          StageGraph::chain(2 * ranks)};
}

HEDDLE_INLINE Schedule one_f_one_b_v(const PipelineOptions& options) {
  return weave(one_f_one_b_v(options.ranks, options.microbatches), options.sizes);
}

}  // namespace heddle::inline v0::schedule
