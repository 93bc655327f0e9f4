// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// Definitions of gis.hpp.

#include <cstddef>
#include <utility>
#include <vector>

#include <heddle/core/linkage.hpp>
#include <heddle/core/text.hpp>
#include <heddle/schedule/generator/gis.hpp>
#include <heddle/schedule/generator/impl/grouped_1f1b.hpp>
#include <heddle/schedule/generator/impl/pipeline_shape.hpp>
#include <heddle/schedule/order/weave.hpp>

namespace heddle::inline v0::schedule {

HEDDLE_INLINE Orders gis(int ranks, int stages_per_rank, int microbatches) {
  impl::check("heddle::schedule::gis", ranks, stages_per_rank, microbatches);
  const int group = (ranks + 1) / 2;
  // As in the authors' generator, the orders are those of whole groups, without the microbatches
  // from M on.
  const int whole = (microbatches + group - 1) / group * group;
  Orders orders =
      impl::grouped_1f1b(text("GIS P=", ranks, " V=", stages_per_rank, " M=", microbatches),
                         {ranks, stages_per_rank, whole, group}, 1, 0, false);
  for (auto& list : orders.ranks) {
    std::vector<Order> split;
    split.reserve(3 * static_cast<std::size_t>(microbatches) *
                  static_cast<std::size_t>(stages_per_rank));
    for (const Order& order : list) {
      if (+order.item >= static_cast<std::size_t>(microbatches)) continue;
      if (order.kind == Kind::forward) split.push_back(order);
      if (order.kind != Kind::backward) continue;
      split.push_back({Kind::backward_input, order.stage, order.item});
      split.push_back({Kind::backward_weight, order.stage, order.item});
    }
    list = std::move(split);
  }
  return orders;
}

HEDDLE_INLINE Schedule gis(const InterleavedOptions& options) {
  return weave(gis(options.ranks, options.stages_per_rank, options.microbatches), options.sizes);
}

}  // namespace heddle::inline v0::schedule
