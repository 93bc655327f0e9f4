// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// Definitions of zero_bubble.hpp.

#include <algorithm>
#include <cstddef>
#include <string>
#include <utility>

#include <heddle/core/linkage.hpp>
#include <heddle/core/text.hpp>
#include <heddle/schedule/generator/impl/deepest_first.hpp>
#include <heddle/schedule/generator/impl/pipeline_shape.hpp>
#include <heddle/schedule/generator/zero_bubble.hpp>
#include <heddle/schedule/order/stage_graph.hpp>
#include <heddle/schedule/order/weave.hpp>

namespace heddle::inline v0::schedule {

namespace impl {

/// Returns interleaved 1F1B with a split backward, in rounds of `round` microbatches. A rank
/// computes `ahead` more forwards in its warm-up for every rank after it, and postpones `ahead`
/// more W for every rank before it. All ranks therefore have the same number of live activations.
inline Orders zero_bubble(std::string name, int ranks, int stages_per_rank, int microbatches,
                          int round, int ahead) {
  const int total = microbatches * stages_per_rank;
  Orders orders{std::move(name), {}, StageGraph::chain(ranks * stages_per_rank)};
  for (int rank = 0; rank < ranks; ++rank) {
    auto& list = orders.ranks.emplace_back();
    list.reserve(3 * static_cast<std::size_t>(total));
    // Adds the k-th forward or backward of this rank.
    const auto add = [&](Kind kind, int k) {
      const int turn = k / round % stages_per_rank;
      const int chunk = kind == Kind::forward ? turn : stages_per_rank - 1 - turn;
      const int item = k / (round * stages_per_rank) * round + k % round;
      list.push_back({kind, Stage{chunk * ranks + rank}, Item{item}});
    };
    const int warm = std::min(total, (stages_per_rank - 1) * round + ahead * (ranks - 1 - rank));
    const int late = std::min(total, ahead * rank);
    for (int k = 0; k < warm; ++k) add(Kind::forward, k);
    for (int k = 0; k < total; ++k) {
      if (k + warm < total) add(Kind::forward, k + warm);
      add(Kind::backward_input, k);
      if (k >= late) add(Kind::backward_weight, k - late);
    }
    for (int k = total - late; k < total; ++k) add(Kind::backward_weight, k);
  }
  return orders;
}

}  // namespace impl

HEDDLE_INLINE Orders zb_h1(int ranks, int microbatches) {
  impl::check("heddle::schedule::zb_h1", ranks, 1, microbatches);
  std::string name = text("ZB-H1 P=", ranks, " M=", microbatches);
  if (microbatches <= ranks)
    return {std::move(name), impl::deepest_first(ranks, false, microbatches),
            StageGraph::chain(ranks)};
  return impl::zero_bubble(std::move(name), ranks, 1, microbatches, microbatches, 1);
}

HEDDLE_INLINE Orders zb_h2(int ranks, int microbatches) {
  impl::check("heddle::schedule::zb_h2", ranks, 1, microbatches);
  std::string name = text("ZB-H2 P=", ranks, " M=", microbatches);
  if (microbatches < 2 * ranks - 1)
    return {std::move(name), impl::deepest_first(ranks, false, microbatches),
            StageGraph::chain(ranks)};
  return impl::zero_bubble(std::move(name), ranks, 1, microbatches, microbatches, 2);
}

HEDDLE_INLINE Orders interleaved_zb1p(int ranks, int stages_per_rank, int microbatches) {
  const int round =
      impl::round_of("heddle::schedule::interleaved_zb1p", ranks, stages_per_rank, microbatches);
  return impl::zero_bubble(
      text("interleaved ZB1P P=", ranks, " V=", stages_per_rank, " M=", microbatches), ranks,
      stages_per_rank, microbatches, round, 1);
}

HEDDLE_INLINE Schedule zb_h1(const PipelineOptions& options) {
  return weave(zb_h1(options.ranks, options.microbatches), options.sizes);
}

HEDDLE_INLINE Schedule zb_h2(const PipelineOptions& options) {
  return weave(zb_h2(options.ranks, options.microbatches), options.sizes);
}

HEDDLE_INLINE Schedule interleaved_zb1p(const InterleavedOptions& options) {
  return weave(interleaved_zb1p(options.ranks, options.stages_per_rank, options.microbatches),
               options.sizes);
}

}  // namespace heddle::inline v0::schedule
