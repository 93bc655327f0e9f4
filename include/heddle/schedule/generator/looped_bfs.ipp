// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// Definitions of looped_bfs.hpp.

#include <cstddef>

#include <heddle/core/linkage.hpp>
#include <heddle/core/text.hpp>
#include <heddle/schedule/generator/impl/pipeline_shape.hpp>
#include <heddle/schedule/generator/looped_bfs.hpp>
#include <heddle/schedule/order/stage_graph.hpp>
#include <heddle/schedule/order/weave.hpp>

namespace heddle::inline v0::schedule {

HEDDLE_INLINE Orders looped_bfs(int ranks, int stages_per_rank, int microbatches) {
  impl::check("heddle::schedule::looped_bfs", ranks, stages_per_rank, microbatches);
  Orders orders{text("looped BFS P=", ranks, " V=", stages_per_rank, " M=", microbatches),
                {},
                StageGraph::chain(ranks * stages_per_rank)};
  for (int rank = 0; rank < ranks; ++rank) {
    auto& list = orders.ranks.emplace_back();
    list.reserve(2 * static_cast<std::size_t>(stages_per_rank) *
                 static_cast<std::size_t>(microbatches));
    for (int v = 0; v < stages_per_rank; ++v)
      for (int m = 0; m < microbatches; ++m)
        list.push_back({Kind::forward, Stage{v * ranks + rank}, Item{m}});
    for (std::size_t i = list.size(); i-- > 0;)
      list.push_back({Kind::backward, list[i].stage, list[i].item});
  }
  return orders;
}

HEDDLE_INLINE Schedule looped_bfs(const InterleavedOptions& options) {
  return weave(looped_bfs(options.ranks, options.stages_per_rank, options.microbatches),
               options.sizes);
}

}  // namespace heddle::inline v0::schedule
