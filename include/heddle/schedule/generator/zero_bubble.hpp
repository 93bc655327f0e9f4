// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// Zero-bubble schedules without a fold: ZB-H1, ZB-H2 and interleaved ZB1P. The backward is split;
/// I, which others wait for, goes at once, W, which nobody waits for, where a rank would be idle.

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include <heddle/core/text.hpp>
#include <heddle/schedule/generator/pipeline.hpp>
#include <heddle/schedule/order/orders.hpp>
#include <heddle/schedule/order/stage_graph.hpp>
#include <heddle/schedule/order/weave.hpp>

namespace heddle::inline v0::schedule {

namespace impl {

/// Interleaved 1F1B with a split backward in rounds of `round` microbatches. A rank starts `ahead`
/// forwards more for every rank after it, and is `ahead` W late for every rank before it, so that
/// all keep as many activations.
inline Orders zero_bubble(std::string name, int ranks, int stages_per_rank, int microbatches,
                          int round, int ahead) {
  const int total = microbatches * stages_per_rank;
  Orders orders{std::move(name), {}, StageGraph::chain(ranks * stages_per_rank)};
  for (int rank = 0; rank < ranks; ++rank) {
    auto& list = orders.ranks.emplace_back();
    list.reserve(3 * static_cast<std::size_t>(total));
    // The k-th forward or backward: of which chunk, of which microbatch.
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

/// ZB-H1 (Qi et al., "Zero bubble pipeline parallelism", ICLR'24), in the order of
/// torch.distributed.pipelining: the memory of 1F1B, min(M, P) activations on every rank, and for
/// M >= P the bubble zb_h1_bubble().
[[nodiscard]] inline Orders zb_h1_orders(int stages, int microbatches) {
  impl::check("heddle::schedule::zb_h1", stages, 1, microbatches);
  return impl::zero_bubble(text("ZB-H1 P=", stages, " M=", microbatches), stages, 1, microbatches,
                           microbatches, 1);
}

/// ZB-H2 (the same source): twice the forwards ahead of ZB-H1 and min(M, 2P - 1) activations on
/// every rank, for a smaller bubble: zb_h2_bubble() for M >= 2P - 1.
[[nodiscard]] inline Orders zb_h2_orders(int stages, int microbatches) {
  impl::check("heddle::schedule::zb_h2", stages, 1, microbatches);
  return impl::zero_bubble(text("ZB-H2 P=", stages, " M=", microbatches), stages, 1, microbatches,
                           microbatches, 2);
}

/// Interleaved ZB1P, the InterleavedZeroBubble of torch.distributed.pipelining: ZB-H1 with several
/// stages on every rank, in the rounds of interleaved_orders(). Live activations of chunks, each
/// 1/V of a rank's, min(M V, (V - 1) R + P) on every rank: the memory of 1F1B where P divides M.
///
/// @throws infeasible where M is not a multiple of M div P; it names the nearest M that is.
[[nodiscard]] inline Orders interleaved_zb1p_orders(int ranks, int stages_per_rank,
                                                    int microbatches) {
  const int round =
      impl::round_of("heddle::schedule::interleaved_zb1p", ranks, stages_per_rank, microbatches);
  return impl::zero_bubble(
      text("interleaved ZB1P P=", ranks, " V=", stages_per_rank, " M=", microbatches), ranks,
      stages_per_rank, microbatches, round, 1);
}

/// zb_h1_orders, woven.
[[nodiscard]] inline Schedule zb_h1(const PipelineOptions& options) {
  return weave(zb_h1_orders(options.stages, options.microbatches), options.sizes);
}
/// zb_h2_orders, woven.
[[nodiscard]] inline Schedule zb_h2(const PipelineOptions& options) {
  return weave(zb_h2_orders(options.stages, options.microbatches), options.sizes);
}
/// interleaved_zb1p_orders, woven.
[[nodiscard]] inline Schedule interleaved_zb1p(const InterleavedOptions& options) {
  return weave(
      interleaved_zb1p_orders(options.ranks, options.stages_per_rank, options.microbatches),
      options.sizes);
}

/// The idle time of the first rank in a step of ZB-H1 with M >= P: (P - 1) max(F, I, F + I - W).
/// Where F and I are at least W it is the (P - 1)(F + I - W) of Qi et al.; the other cases are
/// ours, and were found by simulation.
template <class Time>
[[nodiscard]] Time zb_h1_bubble(int stages, const Time& forward, const Time& backward_input,
                                const Time& backward_weight) {
  return Time(stages - 1) *
         std::max({forward, backward_input, Time(forward + backward_input - backward_weight)});
}

/// The idle time of the first rank from its first to its last action in a step of ZB-H2 with
/// M >= 2P - 1: (P - 1) max(0, F + I - 2W, I - F). Qi et al. give (P - 1)(F + I - 2W); the other
/// cases are ours, and were found by simulation. The step is longer by what the last rank starts
/// later: no rank is idle at F = I = W, but their spans are shifted.
template <class Time>
[[nodiscard]] Time zb_h2_bubble(int stages, const Time& forward, const Time& backward_input,
                                const Time& backward_weight) {
  return Time(stages - 1) *
         std::max({Time(0), Time(forward + backward_input - backward_weight - backward_weight),
                   Time(backward_input - forward)});
}

}  // namespace heddle::inline v0::schedule
