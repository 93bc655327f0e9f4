// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// Looped breadth-first: several stages on every rank, each of which takes all microbatches before
/// the next has its turn. As Orders and as a Schedule.

#include <heddle/core/text.hpp>
#include <heddle/schedule/generator/pipeline.hpp>

namespace heddle::inline v0::schedule {

/// All microbatches through a rank's first stage, then through its second, and so on; then
/// backwards, the stages and the microbatches in reverse (Lamy-Poirier, "Breadth-First Pipeline
/// Parallelism", MLSys'23). With F and B of the V stages of a rank together, a step takes
/// (V max(M, P) + min(M, P) - 1)(F + B) / V: the bubble of interleaved 1F1B for M >= P. A rank's
/// messages come in runs of M for one stage, at the price of V M live activations of a stage each.
[[nodiscard]] inline Orders looped_bfs_orders(int ranks, int stages_per_rank, int microbatches) {
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

/// looped_bfs_orders, woven.
[[nodiscard]] inline Schedule looped_bfs(const InterleavedOptions& options) {
  return weave(looped_bfs_orders(options.ranks, options.stages_per_rank, options.microbatches),
               options.sizes);
}

}  // namespace heddle::inline v0::schedule
