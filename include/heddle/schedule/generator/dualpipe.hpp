// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// DualPipe and DualPipeV: microbatches enter at both ends, or at one end of a pipeline folded to a
/// V, and where two meet, the forward of one is fused with the backward of the other, so that a
/// stage can let one compute while the other communicates. See fuse() for what a pair is.

#include <algorithm>
#include <array>
#include <cstddef>
#include <utility>
#include <vector>

#include <heddle/core/contract.hpp>
#include <heddle/core/text.hpp>
#include <heddle/schedule/generator/pipeline.hpp>
#include <heddle/schedule/order/orders.hpp>
#include <heddle/schedule/order/stage_graph.hpp>
#include <heddle/schedule/order/weave.hpp>

namespace heddle::inline v0::schedule {

namespace impl {

/// One rank's list under DualPipe. It has two lanes of microbatches: lane 0 is the one that comes
/// to it early, lane 1 the other.
class DualPipeRank {
 public:
  /// A lane: through which stage, and which microbatch comes first.
  struct Lane {
    Stage stage;
    int first = 0;
    int forwards = 0;   ///< so far
    int backwards = 0;  ///< so far
  };

  DualPipeRank(Lane early, Lane late, int microbatches) : m_lanes{early, late} {
    m_list.reserve(6 * static_cast<std::size_t>(microbatches));
  }

  /// The eight steps of the published order. `place` counts from the end where lane 0 enters, 0 to
  /// `length` - 1, where the two ends of the pipeline, or its two halves, meet. `microbatches` are
  /// those of a lane, at least 2 `length`.
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
      // Where the two meet, the first pair is not fused: its backward would wait for nothing else.
      pair(0, 1, i > 0 || after > 0);
      pair(1, 0, true);
    }
    for (int i = 0; i < after; ++i) {
      backward(1, false);
      pair(1, 0, true);
    }
    // The second half of these leave their W for later: from one of lane 1 on where `place` is
    // odd, of lane 0 where it is even.
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
  std::vector<Order> m_weights;  ///< of every I so far
  std::size_t m_weights_done = 0;
};

}  // namespace impl

/// DualPipe (DeepSeek-AI, "DeepSeek-V3 technical report", 2024, and the step counts of its released
/// code). P is even; rank r holds the stages r and P - 1 - r, so that every stage is on two ranks:
/// the microbatches 0 .. M/2 - 1 go from rank 0 to rank P - 1, the others the other way. P + 1
/// activations on every rank; the bubble is dualpipe_bubble().
///
/// @throws infeasible for an odd number of stages, and for fewer than 2P or an odd number of
///         microbatches; it names the nearest that will do.
[[nodiscard]] inline Orders dualpipe_orders(int stages, int microbatches) {
  constexpr const char* where = "heddle::schedule::dualpipe";
  impl::check(where, stages, 1, microbatches);
  if (stages % 2 != 0)
    throw infeasible({where, "a pipeline entered at both ends has an even number of stages",
                      text("stages = ", stages),
                      text("the nearest number that has is ", stages + 1)});
  if (microbatches < 2 * stages || microbatches % 2 != 0)
    throw infeasible({where, "half of the microbatches, at least one for every stage, go each way",
                      text("microbatches = ", microbatches, ", stages = ", stages),
                      text("the nearest number that does is ",
                           std::max(microbatches + microbatches % 2, 2 * stages))});
  const int half = stages / 2;
  const int each = microbatches / 2;
  Orders orders{
      text("DualPipe P=", stages, " M=", microbatches), {}, StageGraph::replicated_chain(stages)};
  for (int rank = 0; rank < stages; ++rank) {
    const int place = std::min(rank, stages - 1 - rank);
    const int first = rank < half ? 0 : each;
    orders.ranks.push_back(
        impl::DualPipeRank({Stage{place}, first}, {Stage{stages - 1 - place}, each - first}, each)
            .run(place, half, each));
  }
  return orders;
}

/// DualPipeV (the same source, "cut in half"): DualPipe's order on a pipeline folded to a V, where
/// rank r holds the stages r and 2P - 1 - r once. 2P + 1 activations on every rank; the bubble is
/// dualpipe_bubble() of 2P stages.
///
/// @throws infeasible for fewer than 2P microbatches; it names the nearest that will do.
[[nodiscard]] inline Orders dualpipe_v_orders(int ranks, int microbatches) {
  constexpr const char* where = "heddle::schedule::dualpipe_v";
  impl::check(where, ranks, 2, microbatches);
  if (microbatches < 2 * ranks)
    throw infeasible({where, "a step has at least two microbatches for every rank",
                      text("microbatches = ", microbatches, ", ranks = ", ranks),
                      text("the nearest number that has is ", 2 * ranks)});
  Orders orders{text("DualPipeV P=", ranks, " M=", microbatches), {}, StageGraph::chain(2 * ranks)};
  for (int rank = 0; rank < ranks; ++rank)
    orders.ranks.push_back(
        impl::DualPipeRank({Stage{rank}}, {Stage{2 * ranks - 1 - rank}}, microbatches)
            .run(rank, ranks, microbatches));
  return orders;
}

/// dualpipe_orders, woven.
[[nodiscard]] inline Schedule dualpipe(const PipelineOptions& options) {
  return weave(dualpipe_orders(options.stages, options.microbatches), options.sizes);
}
/// dualpipe_v_orders, woven.
[[nodiscard]] inline Schedule dualpipe_v(const FoldedOptions& options) {
  return weave(dualpipe_v_orders(options.ranks, options.microbatches), options.sizes);
}

/// The most that a rank is idle in a step of DualPipe (stages = P) or DualPipeV (stages = 2P):
/// (stages / 2 - 1)(FB + B - 3W), where `FB` is the time of a fused pair. Exact where
/// F = I >= W and FB is between B and F + B; which costs it holds for was found by simulation.
/// Source of the formula: the README of DeepSeek-AI's DualPipe.
template <class Time>
[[nodiscard]] Time dualpipe_bubble(int stages, const Time& forward_backward, const Time& backward,
                                   const Time& backward_weight) {
  return Time(stages / 2 - 1) *
         Time(forward_backward + backward - backward_weight - backward_weight - backward_weight);
}

}  // namespace heddle::inline v0::schedule
