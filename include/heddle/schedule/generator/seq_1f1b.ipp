// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// Definitions of seq_1f1b.hpp.

#include <algorithm>
#include <cstddef>

#include <heddle/core/linkage.hpp>
#include <heddle/core/text.hpp>
#include <heddle/schedule/generator/impl/pipeline_shape.hpp>
#include <heddle/schedule/generator/seq_1f1b.hpp>
#include <heddle/schedule/order/stage_graph.hpp>
#include <heddle/schedule/order/weave.hpp>

namespace heddle::inline v0::schedule {

HEDDLE_INLINE Orders seq_1f1b(int ranks, int microbatches, int slices) {
  constexpr const char* where = "heddle::schedule::seq_1f1b";
  impl::check(where, ranks, 1, microbatches);
  impl::check_groups(where, microbatches, slices, "slices");
  Orders orders{text("Seq1F1B P=", ranks, " M=", microbatches, " slices=", slices),
                {},
                StageGraph::chain(ranks)};
  for (int rank = 0; rank < ranks; ++rank) {
    auto& list = orders.ranks.emplace_back();
    list.reserve(2 * static_cast<std::size_t>(microbatches));
    const auto forward = [&](int k) { list.push_back({Kind::forward, Stage{rank}, Item{k}}); };
    const auto backward = [&](int k) {
      const int last = k / slices * slices + slices - 1;
      list.push_back({Kind::backward, Stage{rank}, Item{last - k % slices}});
    };
    // The backwards of the last rank begin when it has all slices of the first sequence.
    const int ahead = std::min(microbatches, ranks - 2 - rank + slices);
    for (int k = 0; k < ahead; ++k) forward(k);
    for (int k = 0; k < microbatches; ++k) {
      if (k + ahead < microbatches) forward(k + ahead);
      backward(k);
    }
  }
  return orders;
}

HEDDLE_INLINE Schedule seq_1f1b(const Seq1f1bOptions& options) {
  return weave(seq_1f1b(options.ranks, options.microbatches, options.slices), options.sizes);
}

}  // namespace heddle::inline v0::schedule
