// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// Definitions of v_blocks.hpp.

#include <algorithm>
#include <array>
#include <cstddef>
#include <optional>
#include <utility>
#include <vector>

#include <heddle/core/index.hpp>
#include <heddle/core/linkage.hpp>
#include <heddle/plan/impl/known_orders.hpp>
#include <heddle/plan/impl/v_blocks.hpp>
#include <heddle/schedule/action.hpp>
#include <heddle/schedule/generator/internal/v_table.hpp>
#include <heddle/schedule/order/orders.hpp>
#include <heddle/schedule/order/stage_graph.hpp>

namespace heddle::inline v0::plan::impl {

/// Returns the slots of a passage from its first F to its last I, or nothing if two computations of
/// a rank would need one slot, or if a rank would keep more than the cap.
inline std::optional<std::size_t> length_of(const schedule::impl::VPassage& passage,
                                            std::size_t ranks, std::size_t cap) {
  for (std::size_t rank = 0; rank < ranks; ++rank) {
    const auto slots = passage.slots(ranks, rank);
    unsigned taken = 0;
    for (const std::size_t slot : slots) {
      if ((taken >> (slot % 6) & 1u) != 0) return std::nullopt;
      taken |= 1u << (slot % 6);
    }
    // Each activation is kept from its F until the end of its W, at least one slot after the I.
    const std::size_t kept = slots[3] - slots[0] + slots[2] - slots[1] + 4;
    if (cap > 0 && kept > 6 * cap) return std::nullopt;
  }
  return passage.slots(ranks, 0)[3];
}

HEDDLE_INLINE std::vector<schedule::impl::VPassage> v_blocks(std::size_t ranks, std::size_t cap,
                                                             std::size_t most) {
  using Passage = schedule::impl::VPassage;
  std::vector<std::pair<std::size_t, Passage>> found;
  // Adds the shortest passages with these steps and any turns.
  const auto add = [&](Passage passage, std::size_t count) {
    std::vector<std::pair<std::size_t, Passage>> fits;
    for (std::size_t turn = 0; turn < 216; ++turn) {
      passage.turns = {1 + turn % 6, 1 + turn / 6 % 6, 1 + turn / 36};
      if (const auto length = length_of(passage, ranks, cap)) fits.emplace_back(*length, passage);
    }
    std::ranges::stable_sort(fits, {}, [](const auto& each) { return each.first; });
    if (fits.size() > count) fits.resize(count);
    found.insert(found.end(), fits.begin(), fits.end());
  };
  constexpr std::size_t widest = 5;
  for (std::size_t away = 1; away <= widest; ++away)
    for (std::size_t after = 1; after <= away; ++after)
      for (std::size_t bend = 1; bend < ranks; ++bend)
        if (after < away || bend == 1) add({{away, 1, away, 1}, {}, bend, after}, 8);
  for (std::size_t code = 0; code < widest * widest * widest * widest; ++code)
    add({{1 + code % widest, 1 + code / widest % widest, 1 + code / (widest * widest) % widest,
          1 + code / (widest * widest * widest)},
         {}},
        1);
  std::ranges::stable_sort(found, {}, [](const auto& each) { return each.first; });
  std::vector<Passage> passages;
  for (const auto& [length, passage] : found) {
    if (passages.size() == most) break;
    passages.push_back(passage);
  }
  return passages;
}

HEDDLE_INLINE std::size_t folded_items(const Orders& orders) {
  const std::size_t ranks = orders.ranks.size();
  if (ranks == 0 || orders.graph != StageGraph::chain(static_cast<int>(2 * ranks))) return 0;
  const bool split = std::ranges::find(orders.ranks[0], Kind::backward_input, &Order::kind) !=
                     orders.ranks[0].end();
  const std::size_t entries = split ? 6 : 4;
  const std::size_t items = orders.ranks[0].size() / entries;
  for (std::size_t rank = 0; rank < ranks; ++rank) {
    const auto& list = orders.ranks[rank];
    if (list.size() != entries * items) return 0;
    std::vector<char> seen(entries * items, 0);
    for (const Order& order : list) {
      const bool far = +order.stage == 2 * ranks - 1 - rank;
      const bool fits = (far || +order.stage == rank) && +order.item < items && !order.fused &&
                        (order.kind == Kind::forward || (order.kind == Kind::backward) != split) &&
                        order.kind <= Kind::backward;
      if (!fits) return 0;
      const std::size_t kind =
          order.kind == Kind::backward ? 1 : static_cast<std::size_t>(order.kind);
      char& here = seen[(2 * kind + (far ? 1 : 0)) * items + +order.item];
      if (here != 0) return 0;
      here = 1;
    }
  }
  return items;
}

HEDDLE_INLINE Orders orders_of(const schedule::impl::VTable& table, const Orders& orders) {
  Orders result = orders;
  result.ranks = table.lists();
  const bool whole =
      std::ranges::find(orders.ranks[0], Kind::backward, &Order::kind) != orders.ranks[0].end();
  return whole ? merged(std::move(result)) : result;
}

}  // namespace heddle::inline v0::plan::impl
