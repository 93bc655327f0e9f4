// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// v_blocks(): the passages of a microbatch through a chain that is folded to a V, and the orders
/// that repeat them.

#include <algorithm>
#include <cstddef>
#include <string>
#include <vector>

#include <heddle/core/linkage.hpp>
#include <heddle/core/text.hpp>
#include <heddle/schedule/generator/internal/v_table.hpp>
#include <heddle/schedule/order/orders.hpp>

namespace heddle::inline v0::plan::impl {

/// Returns up to `most` passages through `ranks` ranks in which no rank computes two things in a
/// slot, the shortest first. A rank keeps about `cap` activations at most, 0 for no limit. There
/// are passages for each choice of the four steps, with the shortest turns that fit. If the steps
/// back to rank 0 are 1, the other two may change at one rank. These are the building blocks of Qi
/// et al. ("Pipeline parallelism with controllable memory", NeurIPS'24).
[[nodiscard]] std::vector<schedule::impl::VPassage> v_blocks(std::size_t ranks, std::size_t cap,
                                                             std::size_t most);

/// Returns the number of microbatches of `orders` if rank r of P ranks has the stages r and
/// 2P - 1 - r of a chain, with the forward and the backward of each microbatch, and 0 otherwise.
/// The backward may be split.
[[nodiscard]] std::size_t folded_items(const Orders& orders);

/// Returns the work of `orders`, which is that of a V, in the order of a table.
[[nodiscard]] Orders orders_of(const schedule::impl::VTable& table, const Orders& orders);

/// Calls `consider(orders, rule)` with the work of `orders` in the passages of V-half and V-min,
/// repeated from the first to the last microbatch, if the work is that of a V. If F, I and W are
/// unequal, a repeated passage may be shorter than its squeezed form.
template <class Consider>
void try_repeated(const Orders& orders, const Consider& consider) {
  const std::size_t items = folded_items(orders);
  if (items == 0) return;
  const std::size_t ranks = orders.ranks.size();
  const auto repeat = [&](const schedule::impl::VPassage& passage, const std::string& rule) {
    consider(orders_of(schedule::impl::VTable(ranks, items, passage), orders), rule);
  };
  repeat(schedule::impl::v_half_passage(ranks), "V-half repeated");
  repeat(schedule::impl::v_min_passage(ranks), "V-min repeated");
}

/// Calls `consider(orders, rule)` with the work of `orders` in the order of many V blocks, if the
/// work is that of a V. A block is repeated, then squeezed, and repeated with its ends reordered.
/// The cap limits the passages and the squeezed ends; 0 means no limit. The blocks have at most
/// about `entries` entries. Reordered ends need 2 P microbatches, so P^2 must not exceed `entries`.
template <class Consider>
void try_v_blocks(const Orders& orders, std::size_t cap, std::size_t entries,
                  const Consider& consider) {
  const std::size_t items = folded_items(orders);
  if (items == 0) return;
  const std::size_t ranks = orders.ranks.size();
  const std::size_t most = entries / (6 * ranks * items) + 4;
  for (const schedule::impl::VPassage& passage : v_blocks(ranks, cap, most)) {
    schedule::impl::VTable table(ranks, items, passage);
    const std::string rule = text("V block ", passage.steps[0], ' ', passage.steps[1], ' ',
                                  passage.steps[2], ' ', passage.steps[3]);
    consider(orders_of(table, orders), rule + " repeated");
    table.squeeze(cap);
    consider(orders_of(table, orders), rule);
    if (ranks * ranks > entries) continue;
    schedule::impl::VTable ends(ranks, std::max(items, 2 * ranks), passage);
    if (ends.reorder_ends(items)) consider(orders_of(ends, orders), rule + ", ends reordered");
  }
}

}  // namespace heddle::inline v0::plan::impl

#if HEDDLE_DEFINES_PLAN
#include <heddle/plan/impl/v_blocks.ipp>
#endif
