// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// Chimera: pipelines in opposite directions over the same ranks, each with a copy of the model's
/// stages, so that one works in the bubbles of the other. As Orders and as a Schedule.

#include <algorithm>
#include <cstdint>
#include <vector>

#include <heddle/core/contract.hpp>
#include <heddle/core/text.hpp>
#include <heddle/schedule/generator/pipeline.hpp>

namespace heddle::inline v0::schedule {

/// Of chimera().
struct ChimeraOptions {
  int stages = 2;                ///< D, and ranks: an even number
  int microbatches = 1;          ///< in a step, of all pipelines together
  int pairs = 1;                 ///< f: pipelines in each direction, copies of the model 2f
  bool double_forwards = false;  ///< forwards of two microbatches in a row
  StageSizes sizes = {};         ///< of what is kept and sent
};

/// 2f pipelines over D ranks: stage s of the f that go down is on rank s + k D/f, that of the f
/// that go up on rank D - 1 - s + k D/f, modulo D (Li and Hoefler, "Chimera", SC'21). The first
/// half of the microbatches goes down, the second half up, as evenly as they divide.
///
/// Every rank works in the order of slots. A unit of D microbatches takes 2D of them; the n-th
/// microbatch of a pipeline in its unit has its forward on stage s in slot 2n + s and its backward
/// in slot 2n + 2D - 1 - s. No two share a slot, also where one unit follows another.
/// For whole units, with u of them: bubble (D/f - 2)(max(F, B) + (u - 1)|F - B|); live activations
/// between D/2 + 1 and D for f = 1.
///
/// With `double_forwards` the forward slot takes two microbatches; their backwards take the
/// backward slot and the one before it, so that all slots are equally long where B = 2F. For f = 1
/// and whole units of 2D microbatches bubble (D/2 - 1)(F + B) if F <= B <= 2F, with twice the live
/// activations. Backward halving is the same order of twice as many microbatches of half the size.
///
/// @throws infeasible for an odd number of stages, or one that the pairs do not divide evenly.
[[nodiscard]] inline Orders chimera_orders(int stages, int microbatches, int pairs = 1,
                                           bool double_forwards = false) {
  constexpr const char* where = "heddle::schedule::chimera";
  impl::check(where, stages, 1, microbatches);
  expects(pairs >= 1, [&] {
    return Complaint{where, "there is at least one pipeline each way", text("pairs = ", pairs)};
  });
  if (const int step = 2 * pairs; stages % step != 0) {
    const int below = stages / step * step;
    throw infeasible({where, "the stages do not divide between the pipelines",
                      text("stages = ", stages, ", pipelines = ", step),
                      below == 0 ? text("use ", step, " stages")
                                 : text("use ", below, " or ", below + step, " stages")});
  }
  const int pipelines = 2 * pairs;
  const int in_slot = double_forwards ? 2 : 1;  // microbatches
  const int in_unit = stages / pipelines;       // slots for forwards, of one pipeline and stage
  struct Slotted {
    int slot;
    Order order;
  };
  std::vector<std::vector<Slotted>> lists(static_cast<std::size_t>(stages));
  int item = 0;
  for (int pipeline = 0; pipeline < pipelines; ++pipeline) {
    const int shift = pipeline % pairs * (stages / pairs);
    const int count = microbatches / pipelines + (pipeline < microbatches % pipelines);
    for (int m = 0; m < count; ++m, ++item) {
      const int n = m / in_slot;
      const int first = n / in_unit * 2 * stages + 2 * (n % in_unit);
      const int early = m % in_slot + 1 - in_slot;
      for (int s = 0; s < stages; ++s) {
        const int rank = (shift + (pipeline < pairs ? s : stages - 1 - s)) % stages;
        auto& list = lists[static_cast<std::size_t>(rank)];
        list.push_back({first + s, {Kind::forward, Stage{s}, Item{item}}});
        list.push_back(
            {first + 2 * stages - 1 - s + early, {Kind::backward, Stage{s}, Item{item}}});
      }
    }
  }
  Orders orders{
      text("Chimera P=", stages, " M=", microbatches), {}, StageGraph::replicated_chain(stages)};
  if (pairs > 1) orders.name += text(" f=", pairs);
  if (double_forwards) orders.name += " with doubled forwards";
  for (auto& slotted : lists) {
    // The last stage has its forwards and their first backward in one slot: forwards go first.
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

/// chimera_orders, woven.
[[nodiscard]] inline Schedule chimera(const ChimeraOptions& options) {
  return weave(
      chimera_orders(options.stages, options.microbatches, options.pairs, options.double_forwards),
      options.sizes);
}

}  // namespace heddle::inline v0::schedule
