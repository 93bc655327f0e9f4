// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// Definitions of pipeline.hpp.

#include <algorithm>
#include <cstddef>
#include <vector>

#include <heddle/core/linkage.hpp>
#include <heddle/core/text.hpp>
#include <heddle/schedule/generator/impl/pipeline_shape.hpp>
#include <heddle/schedule/generator/pipeline.hpp>
#include <heddle/schedule/order/orders.hpp>
#include <heddle/schedule/order/stage_graph.hpp>
#include <heddle/schedule/order/weave.hpp>

namespace heddle::inline v0::schedule {

HEDDLE_INLINE Orders naive(int ranks, int microbatches) {
  impl::check("heddle::schedule::naive", ranks, 1, microbatches);
  Orders orders{text("naive P=", ranks, " M=", microbatches), {}, StageGraph::chain(ranks)};
  for (int rank = 0; rank < ranks; ++rank) {
    auto& list = orders.ranks.emplace_back();
    list.reserve(2 * static_cast<std::size_t>(microbatches));
    for (int m = 0; m < microbatches; ++m)
      for (const Kind kind : {Kind::forward, Kind::backward})
        list.push_back({kind, Stage{rank}, Item{m}});
  }
  return orders;
}

HEDDLE_INLINE Orders gpipe(int ranks, int microbatches) {
  impl::check("heddle::schedule::gpipe", ranks, 1, microbatches);
  Orders orders{text("GPipe P=", ranks, " M=", microbatches), {}, StageGraph::chain(ranks)};
  for (int rank = 0; rank < ranks; ++rank) {
    auto& list = orders.ranks.emplace_back();
    list.reserve(2 * static_cast<std::size_t>(microbatches));
    for (const Kind kind : {Kind::forward, Kind::backward})
      for (int m = 0; m < microbatches; ++m) list.push_back({kind, Stage{rank}, Item{m}});
  }
  return orders;
}

HEDDLE_INLINE Orders one_f_one_b(int ranks, int microbatches) {
  impl::check("heddle::schedule::one_f_one_b", ranks, 1, microbatches);
  Orders orders{text("1F1B P=", ranks, " M=", microbatches), {}, StageGraph::chain(ranks)};
  for (int rank = 0; rank < ranks; ++rank) {
    auto& list = orders.ranks.emplace_back();
    list.reserve(2 * static_cast<std::size_t>(microbatches));
    const int ahead = std::min(microbatches, ranks - 1 - rank);
    int forward = 0;
    int backward = 0;
    const auto add = [&](Kind kind, int m) { list.push_back({kind, Stage{rank}, Item{m}}); };
    while (forward < ahead) add(Kind::forward, forward++);
    while (forward < microbatches) {
      add(Kind::forward, forward++);
      add(Kind::backward, backward++);
    }
    while (backward < microbatches) add(Kind::backward, backward++);
  }
  return orders;
}

HEDDLE_INLINE Orders interleaved(int ranks, int stages_per_rank, int microbatches) {
  const int round =
      impl::round_of("heddle::schedule::interleaved", ranks, stages_per_rank, microbatches);
  const int total = microbatches * stages_per_rank;
  Orders orders{text("interleaved 1F1B P=", ranks, " V=", stages_per_rank, " M=", microbatches),
                {},
                StageGraph::chain(ranks * stages_per_rank)};
  for (int rank = 0; rank < ranks; ++rank) {
    auto& list = orders.ranks.emplace_back();
    list.reserve(2 * static_cast<std::size_t>(total));
    std::vector<int> next_forward(static_cast<std::size_t>(stages_per_rank), 0);
    std::vector<int> next_backward(static_cast<std::size_t>(stages_per_rank), 0);
    const auto add = [&](Kind kind, int k) {
      const int turn = k / round % stages_per_rank;
      const int chunk = kind == Kind::forward ? turn : stages_per_rank - 1 - turn;
      auto& next = kind == Kind::forward ? next_forward : next_backward;
      list.push_back(
          {kind, Stage{chunk * ranks + rank}, Item{next[static_cast<std::size_t>(chunk)]++}});
    };
    const int ahead = std::min(total, (stages_per_rank - 1) * round + 2 * (ranks - 1 - rank));
    for (int k = 0; k < ahead; ++k) add(Kind::forward, k);
    for (int k = ahead; k < total; ++k) {
      add(Kind::forward, k);
      add(Kind::backward, k - ahead);
    }
    for (int k = total - ahead; k < total; ++k) add(Kind::backward, k);
  }
  return orders;
}

HEDDLE_INLINE Schedule gpipe(const PipelineOptions& options) {
  return weave(gpipe(options.ranks, options.microbatches), options.sizes);
}

HEDDLE_INLINE Schedule one_f_one_b(const PipelineOptions& options) {
  return weave(one_f_one_b(options.ranks, options.microbatches), options.sizes);
}

HEDDLE_INLINE Schedule interleaved(const InterleavedOptions& options) {
  return weave(interleaved(options.ranks, options.stages_per_rank, options.microbatches),
               options.sizes);
}

HEDDLE_INLINE Orders stream(int ranks, int items) {
  impl::check("heddle::schedule::stream", ranks, 1, items);
  Orders orders{text("stream P=", ranks, " M=", items), {}, StageGraph::chain(ranks)};
  for (int s = 0; s < ranks; ++s) {
    auto& list = orders.ranks.emplace_back();
    list.reserve(static_cast<std::size_t>(items));
    for (int m = 0; m < items; ++m) list.push_back({Kind::forward, Stage{s}, Item{m}});
  }
  return orders;
}

HEDDLE_INLINE Schedule stream(const PipelineOptions& options) {
  return weave(stream(options.ranks, options.microbatches), options.sizes);
}

}  // namespace heddle::inline v0::schedule
