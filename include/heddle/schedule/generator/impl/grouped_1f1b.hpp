// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// grouped_1f1b(): interleaved 1F1B in groups of microbatches, for the definitions of the
/// generators.

#include <algorithm>
#include <cstddef>
#include <string>
#include <utility>

#include <heddle/schedule/order/orders.hpp>
#include <heddle/schedule/order/stage_graph.hpp>

namespace heddle::inline v0::schedule::impl {

/// The stages of a pipeline, dealt to the ranks one after the other, and the groups of
/// microbatches.
struct GroupedShape {
  int ranks, stages_per_rank, microbatches, group;

  [[nodiscard]] int total() const { return stages_per_rank * microbatches; }
  /// Returns the k-th forward or backward of a rank. The last group may be shorter.
  [[nodiscard]] Order at(Kind kind, int rank, int k) const {
    const int first = k / (group * stages_per_rank) * group;
    const int within = k - first * stages_per_rank;
    const int length = std::min(group, microbatches - first);
    const int turn = within / length;
    const int chunk = kind == Kind::forward ? turn : stages_per_rank - 1 - turn;
    return {kind, Stage{chunk * ranks + rank}, Item{first + within % length}};
  }
};

/// Returns 1F1B over the turns of `shape`. The warm-up of a rank has the turns of all its stages
/// but one, then `hop` forwards for every rank after it, and `more` forwards. `fused` fuses every
/// steady pair.
inline Orders grouped_1f1b(std::string name, const GroupedShape& shape, int hop, int more,
                           bool fused) {
  const int total = shape.total();
  Orders orders{std::move(name), {}, StageGraph::chain(shape.ranks * shape.stages_per_rank)};
  for (int rank = 0; rank < shape.ranks; ++rank) {
    auto& list = orders.ranks.emplace_back();
    list.reserve(2 * static_cast<std::size_t>(total));
    const int ahead = std::min(
        total, (shape.stages_per_rank - 1) * shape.group + hop * (shape.ranks - 1 - rank) + more);
    for (int k = 0; k < ahead; ++k) list.push_back(shape.at(Kind::forward, rank, k));
    for (int k = 0; k < total; ++k) {
      if (k + ahead < total) {
        list.push_back(shape.at(Kind::forward, rank, k + ahead));
        list.back().fused = fused;
      }
      list.push_back(shape.at(Kind::backward, rank, k));
    }
  }
  return orders;
}

}  // namespace heddle::inline v0::schedule::impl
