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
#include <heddle/schedule/generator/impl/v_table.hpp>
#include <heddle/schedule/generator/pipeline.hpp>
#include <heddle/schedule/order/orders.hpp>
#include <heddle/schedule/order/stage_graph.hpp>
#include <heddle/schedule/order/weave.hpp>

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
    for (const std::size_t chunk : {std::size_t{1}, std::size_t{0}})
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

/// The orders of `passage`, without its gaps at both ends.
inline Orders squeezed(std::string name, int ranks, int microbatches, const VPassage& passage) {
  VTable table(static_cast<std::size_t>(ranks), static_cast<std::size_t>(microbatches), passage);
  table.squeeze();
  return {std::move(name), table.lists(), StageGraph::chain(2 * ranks)};
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

/// V-half (Qi et al., "Pipeline parallelism with controllable memory", NeurIPS'24): about half the
/// memory of 1F1B and half its bubble. Of the 2P activations of ZB-V every rank keeps at most P + 1
/// where P is odd and P + 2 where it is even. For F = I = W = 1 per stage and M >= P >= 3 the
/// bubble is 3P - 4 and 3P - 7. The passage repeats as published, its ends are squeezed; for P <=
/// 2, where ZB-V keeps no more, the orders are those of ZB-V.
[[nodiscard]] inline Orders v_half_orders(int ranks, int microbatches) {
  impl::check("heddle::schedule::v_half", ranks, 2, microbatches);
  std::string name = text("V-half P=", ranks, " M=", microbatches);
  if (ranks <= 2 && microbatches >= 2 * ranks - 1) {
    Orders orders = zb_v_orders(ranks, microbatches);
    orders.name = std::move(name);
    return orders;
  }
  // In steps of 2 up the ranks, two legs of an even number of them would want one slot.
  const std::size_t far_turn = ranks % 2 == 0 ? 4 : 1;
  return impl::squeezed(std::move(name), ranks, microbatches, {{2, 1, 2, 1}, {1, far_turn, 2}});
}

/// V-min (the same source): about a third of the memory of 1F1B and two thirds of its bubble. Every
/// rank keeps at most 2 ceil((P + 2) / 3) activations. For F = I = W = 1 per stage and M >= P >= 2
/// the bubble is 4P - 7 where P is a multiple of 3, else 4P - 5. All steps are 1. With unequal F, I
/// and W its bubble grows with M.
[[nodiscard]] inline Orders v_min_orders(int ranks, int microbatches) {
  impl::check("heddle::schedule::v_min", ranks, 2, microbatches);
  // In steps of 1, two legs of a multiple of 3 ranks would want one slot.
  const std::size_t far_turn = ranks % 3 == 0 ? 3 : 1;
  return impl::squeezed(text("V-min P=", ranks, " M=", microbatches), ranks, microbatches,
                        {{1, 1, 1, 1}, {1, far_turn, 1}});
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
