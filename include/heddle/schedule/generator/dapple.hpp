// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// DAPPLE's early backward: 1F1B whose warm-up is chosen for the network and bounded by the memory.
/// As Orders and as a Schedule.

#include <algorithm>
#include <cstdint>
#include <limits>

#include <heddle/core/contract.hpp>
#include <heddle/core/text.hpp>
#include <heddle/schedule/generator/pipeline.hpp>

namespace heddle::inline v0::schedule {

/// How many forwards stage s of S does before its first backward, where memory allows it.
enum class WarmUp : std::uint8_t {
  policy_a,  ///< S - s, as 1F1B: enough where transfers are short
  policy_b,  ///< 2(S - s) - 1: as if every transfer were a stage, for those that take as long
};

/// Of dapple().
struct DappleOptions {
  int stages = 1;                                   ///< and ranks
  int microbatches = 1;                             ///< in a step
  WarmUp warm_up = WarmUp::policy_a;                ///< how many forwards come first
  int most_live = std::numeric_limits<int>::max();  ///< microbatches that a rank has memory for
  StageSizes sizes = {};                            ///< of what is kept and sent
};

/// Every rank does its warm-up forwards, then a backward and a forward in turn, then the remaining
/// backwards: each backward as early as it can be, so that its activations are free early (Fan et
/// al., "DAPPLE", PPoPP'21, with its policies). Live activations min(K_s, M) on rank s, where
/// K_s = min(S - s, most_live) under policy A and min(2(S - s) - 1, most_live) under policy B.
///
/// With equal stages, free transfers and memory for all of the warm-up, bubble (S - 1)(F + B) under
/// either policy.
[[nodiscard]] inline Orders dapple_orders(int stages, int microbatches,
                                          WarmUp warm_up = WarmUp::policy_a,
                                          int most_live = std::numeric_limits<int>::max()) {
  constexpr const char* where = "heddle::schedule::dapple";
  impl::check(where, stages, 1, microbatches);
  expects(most_live >= 1, [&] {
    return Complaint{where, "a rank needs memory for at least one microbatch",
                     text("most live = ", most_live)};
  });
  Orders orders{text("DAPPLE P=", stages, " M=", microbatches), {}, StageGraph::chain(stages)};
  for (int rank = 0; rank < stages; ++rank) {
    auto& list = orders.ranks.emplace_back();
    list.reserve(2 * static_cast<std::size_t>(microbatches));
    const auto add = [&](Kind kind, int m) { list.push_back({kind, Stage{rank}, Item{m}}); };
    const int wanted = warm_up == WarmUp::policy_a ? stages - rank : 2 * (stages - rank) - 1;
    const int ahead = std::min({wanted, most_live, microbatches});
    for (int m = 0; m < ahead; ++m) add(Kind::forward, m);
    for (int m = 0; m < microbatches; ++m) {
      add(Kind::backward, m);
      if (m + ahead < microbatches) add(Kind::forward, m + ahead);
    }
  }
  return orders;
}

/// dapple_orders, woven.
[[nodiscard]] inline Schedule dapple(const DappleOptions& options) {
  return weave(
      dapple_orders(options.stages, options.microbatches, options.warm_up, options.most_live),
      options.sizes);
}

}  // namespace heddle::inline v0::schedule
