// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// V-shaped zero-bubble schedules: ZB-V, V-half and V-min. The first and the last stage share a
/// rank, which makes the activations of all ranks equal and their number a matter of choice.

#include <algorithm>
#include <array>
#include <cstddef>
#include <string>
#include <utility>
#include <vector>

#include <heddle/core/text.hpp>
#include <heddle/schedule/generator/pipeline.hpp>
#include <heddle/schedule/orders.hpp>
#include <heddle/schedule/pass/fill_idle_with_weights.hpp>
#include <heddle/schedule/stage_graph.hpp>
#include <heddle/schedule/weave.hpp>

namespace heddle::inline v0::schedule {

namespace impl {

/// One rank's list under ZB-V: which order is next, of stage `rank` (0) or 2 `ranks` - 1 - `rank`
/// (1).
class ZbvRank {
 public:
  ZbvRank(int rank, int ranks, int microbatches)
      : m_stages{Stage{rank}, Stage{2 * ranks - 1 - rank}}, m_microbatches(microbatches) {
    m_list.reserve(6 * static_cast<std::size_t>(microbatches));
  }

  /// The order for at least 2 `ranks` - 1 microbatches, less those that are not there.
  std::vector<Order> run(int rank, int ranks) {
    const int whole = std::max(m_microbatches, 2 * ranks - 1);
    const int after = ranks - rank;
    for (int i = 0; i < 2 * after - 1; ++i) add(Kind::forward, 0);
    for (int i = 0; i < rank; ++i) {
      add(Kind::forward, 1);
      add(Kind::forward, 0);
    }
    for (int i = 0; i < after; ++i) down();
    while (next(Kind::forward, 1) < whole) {
      if (next(Kind::forward, 0) < whole) add(Kind::forward, 0);
      add(Kind::backward_input, 0);
      add(Kind::backward_weight, 0);
      down();
    }
    for (int i = 0; i < rank; ++i) {
      add(Kind::backward_input, 0);
      add(Kind::backward_input, 1);
    }
    for (int i = 0; i < after; ++i) {
      add(Kind::backward_input, 0);
      add(Kind::backward_weight, 0);
    }
    for (const std::size_t chunk : {1u, 0u})
      while (next(Kind::backward_weight, chunk) < whole) add(Kind::backward_weight, chunk);
    return std::move(m_list);
  }

 private:
  int& next(Kind kind, std::size_t chunk) {
    return m_next[2 * static_cast<std::size_t>(kind) + chunk];
  }
  void add(Kind kind, std::size_t chunk) {
    const int item = next(kind, chunk)++;
    if (item < m_microbatches) m_list.push_back({kind, m_stages[chunk], Item{item}});
  }
  /// A microbatch turns round in the later stage.
  void down() {
    add(Kind::forward, 1);
    add(Kind::backward_input, 1);
    add(Kind::backward_weight, 1);
  }

  std::array<Stage, 2> m_stages;
  int m_microbatches;
  std::array<int, 6> m_next = {};
  std::vector<Order> m_list;
};

/// How a microbatch passes the ranks of a V, in slots of the time of one F, I or W. The next
/// microbatch follows six slots later.
struct VPassage {
  /// From a rank to the next: forward towards the fold and back from it, then backward likewise.
  std::array<int, 4> steps;
  std::array<int, 3> turns;  ///< from the last of each to the first of the next
};

/// The orders that repeat `passage`, every W in a gap or where more than `cap` activations would
/// be kept.
inline Orders repeat(std::string name, int ranks, int microbatches, const VPassage& passage,
                     int cap) {
  Orders orders{name, {}, StageGraph::chain(2 * ranks)};
  for (int rank = 0; rank < ranks; ++rank) {
    const Stage near{rank};
    const Stage far{2 * ranks - 1 - rank};
    const std::array<std::pair<Kind, Stage>, 4> what = {{{Kind::forward, near},
                                                         {Kind::forward, far},
                                                         {Kind::backward_input, far},
                                                         {Kind::backward_input, near}}};
    std::array<int, 4> slot;  // of the next microbatch in each
    int begin = 0;
    for (std::size_t leg = 0; leg < 4; ++leg) {
      const bool out = leg % 2 == 0;  // towards the higher ranks
      slot[leg] = begin + passage.steps[leg] * (out ? rank : ranks - 1 - rank);
      begin += passage.steps[leg] * (ranks - 1) + (leg < 3 ? passage.turns[leg] : 0);
    }
    auto& list = orders.ranks.emplace_back();
    const auto total = static_cast<std::size_t>(6 * microbatches);
    list.reserve(total);
    std::array<int, 4> next = {};
    while (list.size() < total) {
      std::size_t first = 4;
      for (std::size_t leg = 0; leg < 4; ++leg)
        if (next[leg] < microbatches && (first == 4 || slot[leg] < slot[first])) first = leg;
      const auto [kind, stage] = what[first];
      list.push_back({kind, stage, Item{next[first]}});
      if (kind == Kind::backward_input)
        list.push_back({Kind::backward_weight, stage, Item{next[first]}});
      ++next[first];
      slot[first] += 6;
    }
  }
  orders = fill_idle_with_weights(orders, {.cap = cap});
  orders.name = std::move(name);
  return orders;
}

}  // namespace impl

/// ZB-V (Qi et al., "Zero bubble pipeline parallelism", ICLR'24), in the order of
/// torch.distributed.pipelining: rank r holds the stages r and 2P - 1 - r. With F = I = W per stage
/// and M >= 2P - 1 no rank is idle from its first to its last action, the step takes
/// 6 M + P - 1 of them, and every rank keeps 2P activations, the memory of 1F1B with P stages.
[[nodiscard]] inline Orders zb_v_orders(int ranks, int microbatches) {
  impl::check("heddle::schedule::zb_v", ranks, 2, microbatches);
  Orders orders{text("ZB-V P=", ranks, " M=", microbatches), {}, StageGraph::chain(2 * ranks)};
  for (int rank = 0; rank < ranks; ++rank)
    orders.ranks.push_back(impl::ZbvRank(rank, ranks, microbatches).run(rank, ranks));
  return orders;
}

/// V-half (Qi et al., "Pipeline parallelism with controllable memory", 2024): at most P + 2
/// activations of the 2P of ZB-V, about half the memory of 1F1B, and no more than half its bubble:
/// 3P - 5 for F = I = W = 1 per stage, P >= 3 and M >= P. The passage repeats as published, in
/// steps of 1 towards the fold and 2 back; its turns are ours, found by simulating all up to 4 for
/// P up to 32.
[[nodiscard]] inline Orders v_half_orders(int ranks, int microbatches) {
  impl::check("heddle::schedule::v_half", ranks, 2, microbatches);
  const bool even = ranks % 2 == 0;
  return impl::repeat(text("V-half P=", ranks, " M=", microbatches), ranks, microbatches,
                      {{1, 2, 1, 2}, even ? std::array{4, 2, 4} : std::array{1, 1, 2}}, ranks + 2);
}

/// V-min (the same source): at most 2 ceil((P + 4) / 3) activations, about a third of the memory of
/// 1F1B, and about two thirds of its bubble: 4P - 5 for F = I = W = 1 per stage and P >= 2. All
/// steps are 1; the turns are longer where P is a multiple of 3, or two legs would want one slot.
/// With unequal F, I and W its bubble grows with M.
[[nodiscard]] inline Orders v_min_orders(int ranks, int microbatches) {
  impl::check("heddle::schedule::v_min", ranks, 2, microbatches);
  const bool collides = ranks % 3 == 0;
  return impl::repeat(text("V-min P=", ranks, " M=", microbatches), ranks, microbatches,
                      {{1, 1, 1, 1}, collides ? std::array{3, 1, 3} : std::array{1, 1, 1}},
                      2 * ((ranks + 6) / 3));
}

/// zb_v_orders, woven.
[[nodiscard]] inline Schedule zb_v(const FoldedOptions& options) {
  return weave(zb_v_orders(options.ranks, options.microbatches), options.sizes);
}
/// v_half_orders, woven.
[[nodiscard]] inline Schedule v_half(const FoldedOptions& options) {
  return weave(v_half_orders(options.ranks, options.microbatches), options.sizes);
}
/// v_min_orders, woven.
[[nodiscard]] inline Schedule v_min(const FoldedOptions& options) {
  return weave(v_min_orders(options.ranks, options.microbatches), options.sizes);
}

}  // namespace heddle::inline v0::schedule
