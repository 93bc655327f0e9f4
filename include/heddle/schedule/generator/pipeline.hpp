// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// GPipe, 1F1B and interleaved 1F1B, each as Orders (`gpipe_orders`) and as a Schedule (`gpipe`);
/// and what they improve on.

#include <algorithm>
#include <string>
#include <vector>

#include <heddle/core/contract.hpp>
#include <heddle/core/text.hpp>
#include <heddle/schedule/order/orders.hpp>
#include <heddle/schedule/order/weave.hpp>

namespace heddle::inline v0::schedule {

/// A pipeline with one stage per rank.
struct PipelineOptions {
  int stages = 1;         ///< and ranks
  int microbatches = 1;   ///< in a step
  StageSizes sizes = {};  ///< of what is kept and sent
};

/// A pipeline folded to a V: rank r holds the stages r and 2 ranks - 1 - r.
struct FoldedOptions {
  int ranks = 1;          ///< each with two stages
  int microbatches = 1;   ///< in a step
  StageSizes sizes = {};  ///< of what is kept and sent
};

/// A pipeline in which rank r holds the stages r, r + ranks, r + 2 ranks, ...
struct InterleavedOptions {
  int ranks = 1;            ///< each with several stages
  int stages_per_rank = 2;  ///< on every rank
  int microbatches = 1;     ///< in a step; see interleaved_orders
  StageSizes sizes = {};    ///< of what is kept and sent
};

namespace impl {

inline void check(const char* where, int ranks, int stages_per_rank, int microbatches) {
  expects(ranks >= 1 && stages_per_rank >= 1, [&] {
    return Complaint{where, "a pipeline has at least one stage",
                     text("ranks = ", ranks, ", stages per rank = ", stages_per_rank)};
  });
  expects(microbatches >= 1, [&] {
    return Complaint{where, "a step has at least one microbatch",
                     text("microbatches = ", microbatches)};
  });
}

/// Microbatches in each of the rounds of interleaved_orders().
inline int round_of(const char* where, int ranks, int stages_per_rank, int microbatches) {
  check(where, ranks, stages_per_rank, microbatches);
  const auto rounds_of = [ranks](int m) { return std::max(1, m / ranks); };
  const auto valid = [&](int m) { return m >= 1 && m % rounds_of(m) == 0; };
  if (!valid(microbatches)) {
    int step = 1;
    while (!valid(microbatches - step) && !valid(microbatches + step)) ++step;
    const int nearest = valid(microbatches - step) ? microbatches - step : microbatches + step;
    throw infeasible({where, "the microbatches do not divide into equal rounds",
                      text("microbatches = ", microbatches, ", ranks = ", ranks,
                           ", rounds = ", rounds_of(microbatches)),
                      text("the nearest number that does is ", nearest)});
  }
  return microbatches / rounds_of(microbatches);
}

}  // namespace impl

/// One microbatch after the other down all stages and back: no pipeline at all, what the others are
/// measured by. A step takes M P (F + B), live activations 1 on every rank.
[[nodiscard]] inline Orders naive_orders(int stages, int microbatches) {
  impl::check("heddle::schedule::naive", stages, 1, microbatches);
  Orders orders{text("naive P=", stages, " M=", microbatches), {}, StageGraph::chain(stages)};
  for (int rank = 0; rank < stages; ++rank) {
    auto& list = orders.ranks.emplace_back();
    list.reserve(2 * static_cast<std::size_t>(microbatches));
    for (int m = 0; m < microbatches; ++m)
      for (const Kind kind : {Kind::forward, Kind::backward})
        list.push_back({kind, Stage{rank}, Item{m}});
  }
  return orders;
}

/// All forwards, then all backwards in the same order of microbatches (Huang et al., "GPipe",
/// 2019). Bubble (P - 1)(F + B), live activations M on every rank.
[[nodiscard]] inline Orders gpipe_orders(int stages, int microbatches) {
  impl::check("heddle::schedule::gpipe", stages, 1, microbatches);
  Orders orders{text("GPipe P=", stages, " M=", microbatches), {}, StageGraph::chain(stages)};
  for (int rank = 0; rank < stages; ++rank) {
    auto& list = orders.ranks.emplace_back();
    list.reserve(2 * static_cast<std::size_t>(microbatches));
    for (const Kind kind : {Kind::forward, Kind::backward})
      for (int m = 0; m < microbatches; ++m) list.push_back({kind, Stage{rank}, Item{m}});
  }
  return orders;
}

/// Forwards to fill the pipe, then one forward, one backward, then the remaining backwards
/// (Narayanan et al., "PipeDream", SOSP'19; Fan et al., "DAPPLE", PPoPP'21).
/// Bubble (P - 1)(F + B), live activations min(M, P - r) on rank r.
[[nodiscard]] inline Orders one_f_one_b_orders(int stages, int microbatches) {
  impl::check("heddle::schedule::one_f_one_b", stages, 1, microbatches);
  Orders orders{text("1F1B P=", stages, " M=", microbatches), {}, StageGraph::chain(stages)};
  for (int rank = 0; rank < stages; ++rank) {
    auto& list = orders.ranks.emplace_back();
    list.reserve(2 * static_cast<std::size_t>(microbatches));
    const int ahead = std::min(microbatches, stages - 1 - rank);
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

/// Interleaved 1F1B (Narayanan et al., "Efficient large-scale language model training on GPU
/// clusters", SC'21, in the generalisation of torch.distributed.pipelining): the microbatches run
/// in rounds of R = M / max(1, M div P); in a round every chunk of a rank takes its turn. Bubble (P
/// - 1)(F + B) / V for M >= P, with F and B of the V chunks of a rank together. Live activations of
/// chunks, each 1/V of a rank's, min(M V, (V - 1) R + 2 (P - 1 - r) + 1) on rank r.
///
/// @throws infeasible where M is not a multiple of M div P; it names the nearest M that is.
[[nodiscard]] inline Orders interleaved_orders(int ranks, int stages_per_rank, int microbatches) {
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

/// gpipe_orders, woven.
[[nodiscard]] inline Schedule gpipe(const PipelineOptions& options) {
  return weave(gpipe_orders(options.stages, options.microbatches), options.sizes);
}
/// one_f_one_b_orders, woven.
[[nodiscard]] inline Schedule one_f_one_b(const PipelineOptions& options) {
  return weave(one_f_one_b_orders(options.stages, options.microbatches), options.sizes);
}
/// interleaved_orders, woven.
[[nodiscard]] inline Schedule interleaved(const InterleavedOptions& options) {
  return weave(interleaved_orders(options.ranks, options.stages_per_rank, options.microbatches),
               options.sizes);
}

/// Forward actions only: a stream of items through a chain of stages, one stage per rank, for
/// inference.
[[nodiscard]] inline Orders stream_orders(int stages, int items) {
  impl::check("heddle::schedule::stream", stages, 1, items);
  Orders orders{text("stream P=", stages, " M=", items), {}, StageGraph::chain(stages)};
  for (int s = 0; s < stages; ++s) {
    auto& list = orders.ranks.emplace_back();
    list.reserve(static_cast<std::size_t>(items));
    for (int m = 0; m < items; ++m) list.push_back({Kind::forward, Stage{s}, Item{m}});
  }
  return orders;
}
/// stream_orders, woven.
[[nodiscard]] inline Schedule stream(const PipelineOptions& options) {
  return weave(stream_orders(options.stages, options.microbatches), options.sizes);
}

}  // namespace heddle::inline v0::schedule
