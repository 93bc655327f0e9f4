// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// Definitions of v_shape.hpp.

#include <algorithm>
#include <array>
#include <cstddef>
#include <string>
#include <utility>
#include <vector>

#include <heddle/core/linkage.hpp>
#include <heddle/core/text.hpp>
#include <heddle/schedule/generator/impl/deepest_first.hpp>
#include <heddle/schedule/generator/impl/pipeline_shape.hpp>
#include <heddle/schedule/generator/internal/v_table.hpp>
#include <heddle/schedule/generator/v_shape.hpp>
#include <heddle/schedule/order/live_activations.hpp>
#include <heddle/schedule/order/stage_graph.hpp>
#include <heddle/schedule/order/weave.hpp>

namespace heddle::inline v0::schedule {

namespace impl {

/// The list of one rank in ZB-V. The rank computes two chunks: chunk 0 is stage `rank` and chunk 1
/// is stage 2 `ranks` - 1 - `rank`.
class ZbvRank {
 public:
  ZbvRank(int rank, int ranks, int microbatches)
      : m_stages{Stage{rank}, Stage{2 * ranks - 1 - rank}}, m_microbatches(microbatches) {
    m_list.reserve(6 * static_cast<std::size_t>(microbatches));
  }

  /// Returns the order for max(M, 2 `ranks` - 1) microbatches, without those from M on.
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
  /// Adds the F, I and W of one microbatch in chunk 1.
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

/// Returns the orders of `passage`, without the gaps at its two ends.
inline Orders squeezed(std::string name, int ranks, int microbatches, const VPassage& passage) {
  VTable table(static_cast<std::size_t>(ranks), static_cast<std::size_t>(microbatches), passage);
  table.squeeze();
  return {std::move(name), table.lists(), StageGraph::chain(2 * ranks)};
}

}  // namespace impl

HEDDLE_INLINE Orders zb_v(int ranks, int microbatches, bool published) {
  impl::check("heddle::schedule::zb_v", ranks, 2, microbatches);
  Orders orders{text("ZB-V P=", ranks, " M=", microbatches), {}, StageGraph::chain(2 * ranks)};
  if (microbatches <= ranks && !published) {
    orders.ranks = impl::deepest_first(ranks, true, microbatches);
    return orders;
  }
  for (int rank = 0; rank < ranks; ++rank)
    orders.ranks.push_back(impl::ZbvRank(rank, ranks, microbatches).run(rank, ranks));
  return orders;
}

HEDDLE_INLINE Orders v_half(int ranks, int microbatches) {
  impl::check("heddle::schedule::v_half", ranks, 2, microbatches);
  std::string name = text("V-half P=", ranks, " M=", microbatches);
  if (ranks <= 2 && microbatches >= 2 * ranks - 1) {
    Orders orders = zb_v(ranks, microbatches);
    orders.name = std::move(name);
    return orders;
  }
  return impl::squeezed(std::move(name), ranks, microbatches,
                        impl::v_half_passage(static_cast<std::size_t>(ranks)));
}

HEDDLE_INLINE Orders v_min(int ranks, int microbatches) {
  impl::check("heddle::schedule::v_min", ranks, 2, microbatches);
  std::string name = text("V-min P=", ranks, " M=", microbatches);
  Orders orders = impl::squeezed(name, ranks, microbatches,
                                 impl::v_min_passage(static_cast<std::size_t>(ranks)));
  // From 6 ranks on, V-half keeps more activations.
  if (ranks > 5 || microbatches < ranks) return orders;
  Orders half = v_half(ranks, microbatches);
  if (!std::ranges::equal(live_activations(half), live_activations(orders),
                          std::ranges::less_equal()))
    return orders;
  half.name = std::move(name);
  return half;
}

HEDDLE_INLINE Schedule zb_v(const PipelineOptions& options) {
  return weave(zb_v(options.ranks, options.microbatches), options.sizes);
}

HEDDLE_INLINE Schedule v_half(const PipelineOptions& options) {
  return weave(v_half(options.ranks, options.microbatches), options.sizes);
}

HEDDLE_INLINE Schedule v_min(const PipelineOptions& options) {
  return weave(v_min(options.ranks, options.microbatches), options.sizes);
}

}  // namespace heddle::inline v0::schedule
