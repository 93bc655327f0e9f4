// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// Definitions of dapple.hpp.

#include <algorithm>
#include <cstddef>

#include <heddle/core/contract.hpp>
#include <heddle/core/linkage.hpp>
#include <heddle/core/text.hpp>
#include <heddle/schedule/generator/dapple.hpp>
#include <heddle/schedule/generator/impl/pipeline_shape.hpp>
#include <heddle/schedule/order/stage_graph.hpp>
#include <heddle/schedule/order/weave.hpp>

namespace heddle::inline v0::schedule {

HEDDLE_INLINE Orders dapple(int ranks, int microbatches, DappleOptions::WarmUp warm_up,
                            int most_live) {
  constexpr const char* where = "heddle::schedule::dapple";
  impl::check(where, ranks, 1, microbatches);
  expects(most_live >= 1, [&] {
    return ErrorInfo{where, "a rank needs memory for at least one microbatch",
                     text("most live = ", most_live)};
  });
  Orders orders{text("DAPPLE P=", ranks, " M=", microbatches), {}, StageGraph::chain(ranks)};
  for (int rank = 0; rank < ranks; ++rank) {
    auto& list = orders.ranks.emplace_back();
    list.reserve(2 * static_cast<std::size_t>(microbatches));
    const auto add = [&](Kind kind, int m) { list.push_back({kind, Stage{rank}, Item{m}}); };
    const int wanted =
        warm_up == DappleOptions::WarmUp::policy_a ? ranks - rank : 2 * (ranks - rank) - 1;
    const int ahead = std::min({wanted, most_live, microbatches});
    for (int m = 0; m < ahead; ++m) add(Kind::forward, m);
    for (int m = 0; m < microbatches; ++m) {
      add(Kind::backward, m);
      if (m + ahead < microbatches) add(Kind::forward, m + ahead);
    }
  }
  return orders;
}

HEDDLE_INLINE Schedule dapple(const DappleOptions& options) {
  return weave(dapple(options.ranks, options.microbatches, options.warm_up, options.most_live),
               options.sizes);
}

}  // namespace heddle::inline v0::schedule
