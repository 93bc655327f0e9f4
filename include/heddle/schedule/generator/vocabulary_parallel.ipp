// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// Definitions of vocabulary_parallel.hpp.

#include <cstddef>
#include <utility>

#include <heddle/core/linkage.hpp>
#include <heddle/core/text.hpp>
#include <heddle/schedule/generator/impl/pipeline_shape.hpp>
#include <heddle/schedule/generator/vocabulary_parallel.hpp>
#include <heddle/schedule/order/stage_graph.hpp>
#include <heddle/schedule/order/weave.hpp>

namespace heddle::inline v0::schedule {

HEDDLE_INLINE Orders vocabulary_parallel(int ranks, int microbatches) {
  impl::check("heddle::schedule::vocabulary_parallel", ranks, 2, microbatches);
  StageGraph graph = StageGraph::chain(ranks);
  graph.stages = 2 * ranks;
  for (int share = 0; share < ranks; ++share) {
    graph.edges.push_back({Stage{ranks - 1}, Stage{ranks + share}});
    for (int other = 0; other < ranks; ++other)
      if (other != share)
        graph.edges.push_back({Stage{ranks + share}, Stage{ranks + other}, Kind::backward});
  }
  Orders orders{text("1F1B with vocabulary parallelism P=", ranks, " M=", microbatches),
                {},
                std::move(graph)};
  for (int rank = 0; rank < ranks; ++rank) {
    auto& list = orders.ranks.emplace_back();
    list.reserve(4 * static_cast<std::size_t>(microbatches));
    const auto add = [&](Kind kind, int stage, int item) {
      if (item >= 0 && item < microbatches) list.push_back({kind, Stage{stage}, Item{item}});
    };
    // In slots of F, with B = 2F: F of microbatch m begins at 3m + rank. Its S is at the first F of
    // this rank from 3m + P on, its T one F later, and its B on the last rank follows at 3m + P +
    // 6, when all ranks have done their T.
    const int late = (ranks - rank + 2) / 3;
    const int ahead = ranks + 1 - rank;
    for (int k = 0; k < microbatches + ahead; ++k) {
      add(Kind::backward, ranks + rank, k - 1 - late);
      add(Kind::forward, ranks + rank, k - late);
      add(Kind::forward, rank, k);
      add(Kind::backward, rank, k - ahead);
    }
  }
  return orders;
}

HEDDLE_INLINE Schedule vocabulary_parallel(const PipelineOptions& options) {
  return weave(vocabulary_parallel(options.ranks, options.microbatches), options.sizes);
}

}  // namespace heddle::inline v0::schedule
