// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// deepest_first(): the lists of a chain with a split backward when memory sets no limit. For the
/// definitions of the generators.

#include <cstddef>
#include <vector>

#include <heddle/core/index.hpp>
#include <heddle/schedule/action.hpp>
#include <heddle/schedule/order/orders.hpp>

namespace heddle::inline v0::schedule::impl {

/// Returns the lists of all ranks. In every slot, each rank computes the F or I that has passed
/// the most stages and has its input, and otherwise its oldest W. A slot is the time of one F, I or
/// W. Rank r holds stage r and, if the chain is `folded` to a V, also stage 2 `ranks` - 1 - r.
inline std::vector<std::vector<Order>> deepest_first(int ranks, bool folded, int microbatches) {
  const auto p = static_cast<std::size_t>(ranks);
  const auto m = static_cast<std::size_t>(microbatches);
  const std::size_t stages = folded ? 2 * p : p;
  std::vector<std::vector<Order>> lists(p);
  for (auto& list : lists) list.reserve(3 * m * (stages / p));
  std::vector<std::vector<Order>> owed(p);  // the W of every I so far
  std::vector<std::size_t> weights(p, 0);   // the number of W that have run
  std::vector<std::size_t> forward(stages, 0), input(stages, 0);
  for (std::size_t left = 3 * m * stages; left > 0;) {
    const auto before = forward;  // the results of earlier slots
    const auto back = input;
    for (std::size_t rank = 0; rank < p; ++rank) {
      const std::size_t far = stages - 1 - rank;
      const auto take = [&](Kind kind, std::size_t stage) {
        const bool forwards = kind == Kind::forward;
        std::size_t& done = forwards ? forward[stage] : input[stage];
        const std::size_t there = forwards ? (stage == 0 ? m : before[stage - 1])
                                  : stage + 1 == stages ? before[stage]
                                                        : back[stage + 1];
        if (done >= there) return false;
        lists[rank].push_back({kind, Stage{stage}, Item{done}});
        if (!forwards) owed[rank].push_back({Kind::backward_weight, Stage{stage}, Item{done}});
        ++done;
        return true;
      };
      const bool taken = take(Kind::backward_input, rank) ||
                         (folded && take(Kind::backward_input, far)) ||
                         (folded && take(Kind::forward, far)) || take(Kind::forward, rank);
      if (!taken && weights[rank] == owed[rank].size()) continue;
      if (!taken) lists[rank].push_back(owed[rank][weights[rank]++]);
      --left;
    }
  }
  return lists;
}

}  // namespace heddle::inline v0::schedule::impl
