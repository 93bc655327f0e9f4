// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// Definitions of chimera.hpp.

#include <algorithm>
#include <cstddef>
#include <limits>
#include <vector>

#include <heddle/core/contract.hpp>
#include <heddle/core/linkage.hpp>
#include <heddle/core/text.hpp>
#include <heddle/schedule/generator/chimera.hpp>
#include <heddle/schedule/generator/impl/pipeline_shape.hpp>
#include <heddle/schedule/order/stage_graph.hpp>
#include <heddle/schedule/order/weave.hpp>

namespace heddle::inline v0::schedule {

HEDDLE_INLINE Orders chimera(int ranks, int microbatches, int pairs, bool double_forwards) {
  constexpr const char* where = "heddle::schedule::chimera";
  impl::check(where, ranks, 1, microbatches);
  expects(pairs >= 1, [&] {
    return ErrorInfo{where, "Chimera needs at least one pipeline in each direction",
                     text("pairs = ", pairs)};
  });
  expects(pairs <= std::numeric_limits<int>::max() / 2, [&] {
    return ErrorInfo{where, "there are more pipelines than fit in an int", text("pairs = ", pairs)};
  });
  if (const int step = 2 * pairs; ranks % step != 0) {
    const int below = ranks / step * step;
    throw infeasible({where, "the stages do not divide between the pipelines",
                      text("stages = ", ranks, ", pipelines = ", step),
                      below == 0 ? text("use ", step, " stages")
                                 : text("use ", below, " or ", below + step, " stages")});
  }
  const int pipelines = 2 * pairs;
  const int in_slot = double_forwards ? 2 : 1;  // microbatches
  const int in_unit = ranks / pipelines;        // slots for forwards, of one pipeline and stage
  struct Slotted {
    int slot;
    Order order;
  };
  std::vector<std::vector<Slotted>> lists(static_cast<std::size_t>(ranks));
  int item = 0;
  for (int pipeline = 0; pipeline < pipelines; ++pipeline) {
    const int shift = pipeline % pairs * (ranks / pairs);
    const int count = microbatches / pipelines + (pipeline < microbatches % pipelines);
    for (int m = 0; m < count; ++m, ++item) {
      const int n = m / in_slot;
      const int first = n / in_unit * 2 * ranks + 2 * (n % in_unit);
      const int early = m % in_slot + 1 - in_slot;
      for (int s = 0; s < ranks; ++s) {
        const int rank = (shift + (pipeline < pairs ? s : ranks - 1 - s)) % ranks;
        auto& list = lists[static_cast<std::size_t>(rank)];
        list.push_back({first + s, {Kind::forward, Stage{s}, Item{item}}});
        list.push_back({first + 2 * ranks - 1 - s + early, {Kind::backward, Stage{s}, Item{item}}});
      }
    }
  }
  Orders orders{
      text("Chimera P=", ranks, " M=", microbatches), {}, StageGraph::replicated_chain(ranks)};
  if (pairs > 1) orders.name += text(" f=", pairs);
  if (double_forwards) orders.name += " with doubled forwards";
  for (auto& slotted : lists) {
    // On the last stage the forwards and their first backward share a slot: the forwards go first.
    std::sort(slotted.begin(), slotted.end(), [](const Slotted& a, const Slotted& b) {
      if (a.slot != b.slot) return a.slot < b.slot;
      if (a.order.kind != b.order.kind) return a.order.kind == Kind::forward;
      return a.order.item < b.order.item;
    });
    auto& list = orders.ranks.emplace_back();
    list.reserve(slotted.size());
    for (const Slotted& entry : slotted) list.push_back(entry.order);
    slotted = {};
  }
  return orders;
}

HEDDLE_INLINE Schedule chimera(const ChimeraOptions& options) {
  return weave(chimera(options.ranks, options.microbatches, options.pairs, options.double_forwards),
               options.sizes);
}

}  // namespace heddle::inline v0::schedule
