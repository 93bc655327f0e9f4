// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// Definitions of dualpipe.hpp.

#include <algorithm>
#include <array>
#include <cstddef>
#include <utility>
#include <vector>

#include <heddle/core/contract.hpp>
#include <heddle/core/linkage.hpp>
#include <heddle/core/text.hpp>
#include <heddle/schedule/generator/dualpipe.hpp>
#include <heddle/schedule/generator/impl/pipeline_shape.hpp>
#include <heddle/schedule/order/stage_graph.hpp>
#include <heddle/schedule/order/weave.hpp>

namespace heddle::inline v0::schedule {

namespace impl {

/// The list of one rank in DualPipe. The rank has two lanes of microbatches. Those of lane 0 arrive
/// first, because they enter the pipeline at the nearer end.
class DualPipeRank {
 public:
  /// The microbatches of one direction on this rank.
  struct Lane {
    Stage stage;        ///< the stage of this rank that computes them
    int first = 0;      ///< the first microbatch
    int forwards = 0;   ///< number of forwards so far
    int backwards = 0;  ///< number of backwards so far
  };

  DualPipeRank(Lane early, Lane late, int microbatches) : m_lanes{early, late} {
    m_list.reserve(6 * static_cast<std::size_t>(microbatches));
  }

  /// Returns the eight steps of the published order. `place` is the rank's distance from the end
  /// where lane 0 enters. It is at most `length` - 1, where the two directions, or the two halves
  /// of the V, meet. A lane has `microbatches` of them, at least 2 `length`.
  std::vector<Order> run(int place, int length, int microbatches) {
    const int after = length - 1 - place;
    for (int i = 0; i < 2 * after; ++i) forward(0);
    for (int i = 0; i <= place; ++i) {
      forward(0);
      forward(1);
    }
    for (int i = 0; i < after; ++i) {
      backward(1, true);
      weights();
      forward(1);
    }
    for (int i = 0; i < microbatches - 2 * length + place + 1; ++i) {
      // The innermost rank does not fuse its first pair: the backward would wait for nothing but
      // this forward.
      pair(0, 1, i > 0 || after > 0);
      pair(1, 0, true);
    }
    for (int i = 0; i < after; ++i) {
      backward(1, false);
      pair(1, 0, true);
    }
    // The second half of these backwards postpone their W. The first one that does is of lane 1 if
    // `place` is odd, and of lane 0 if it is even.
    for (int i = 0; i <= place; ++i) {
      const int half = (place + 1) / 2;
      backward(1, i > half || (i == half && place % 2 == 1));
      backward(0, i >= half);
    }
    for (int i = 0; i < after; ++i) {
      weights();
      backward(0, true);
    }
    for (int i = 0; i <= place; ++i) weights();
    return std::move(m_list);
  }

 private:
  void forward(std::size_t lane, bool fused = false) {
    Lane& of = m_lanes[lane];
    m_list.push_back({Kind::forward, of.stage, Item{of.first + of.forwards++}, fused});
  }
  void backward(std::size_t lane, bool split) {
    Lane& of = m_lanes[lane];
    const Item item{of.first + of.backwards++};
    m_list.push_back({split ? Kind::backward_input : Kind::backward, of.stage, item});
    if (split) m_weights.push_back({Kind::backward_weight, of.stage, item});
  }
  void pair(std::size_t forwards, std::size_t backwards, bool fused) {
    forward(forwards, fused);
    backward(backwards, false);
  }
  void weights() { m_list.push_back(m_weights[m_weights_done++]); }

  std::array<Lane, 2> m_lanes;
  std::vector<Order> m_list;
  std::vector<Order> m_weights;  ///< the W of every I so far
  std::size_t m_weights_done = 0;
};

}  // namespace impl

HEDDLE_INLINE Orders dualpipe(int ranks, int microbatches) {
  constexpr const char* where = "heddle::schedule::dualpipe";
  impl::check(where, ranks, 1, microbatches);
  if (ranks % 2 != 0)
    throw infeasible({where, "DualPipe needs an even number of stages", text("stages = ", ranks),
                      text("the nearest valid number is ", ranks + 1)});
  if (microbatches < 2 * ranks || microbatches % 2 != 0)
    throw infeasible({where,
                      "DualPipe needs an even number of microbatches, at least two per stage",
                      text("microbatches = ", microbatches, ", stages = ", ranks),
                      text("the nearest valid number is ",
                           std::max(microbatches + microbatches % 2, 2 * ranks))});
  const int half = ranks / 2;
  const int each = microbatches / 2;
  Orders orders{
      text("DualPipe P=", ranks, " M=", microbatches), {}, StageGraph::replicated_chain(ranks)};
  for (int rank = 0; rank < ranks; ++rank) {
    const int place = std::min(rank, ranks - 1 - rank);
    const int first = rank < half ? 0 : each;
    orders.ranks.push_back(
        impl::DualPipeRank({Stage{place}, first}, {Stage{ranks - 1 - place}, each - first}, each)
            .run(place, half, each));
  }
  return orders;
}

HEDDLE_INLINE Orders dualpipe_v(int ranks, int microbatches) {
  constexpr const char* where = "heddle::schedule::dualpipe_v";
  impl::check(where, ranks, 2, microbatches);
  if (microbatches < 2 * ranks)
    throw infeasible({where, "DualPipeV needs at least two microbatches per rank",
                      text("microbatches = ", microbatches, ", ranks = ", ranks),
                      text("the nearest valid number is ", 2 * ranks)});
  Orders orders{text("DualPipeV P=", ranks, " M=", microbatches), {}, StageGraph::chain(2 * ranks)};
  for (int rank = 0; rank < ranks; ++rank)
    orders.ranks.push_back(
        impl::DualPipeRank({Stage{rank}}, {Stage{2 * ranks - 1 - rank}}, microbatches)
            .run(rank, ranks, microbatches));
  return orders;
}

HEDDLE_INLINE Schedule dualpipe(const PipelineOptions& options) {
  return weave(dualpipe(options.ranks, options.microbatches), options.sizes);
}

HEDDLE_INLINE Schedule dualpipe_v(const PipelineOptions& options) {
  return weave(dualpipe_v(options.ranks, options.microbatches), options.sizes);
}

}  // namespace heddle::inline v0::schedule
