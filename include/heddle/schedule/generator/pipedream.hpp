// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// PipeDream's asynchronous 1F1B: a stage updates its weights after every backward pass, and keeps
/// the versions that microbatches under way still need.

#include <algorithm>
#include <string>
#include <vector>

#include <heddle/core/text.hpp>
#include <heddle/schedule/generator/pipeline.hpp>
#include <heddle/schedule/order/orders.hpp>
#include <heddle/schedule/order/stage_graph.hpp>
#include <heddle/schedule/order/weave.hpp>

namespace heddle::inline v0::schedule {

/// A pipeline with one stage per rank that does not wait for the end of a step to learn.
struct PipeDreamOptions {
  int stages = 1;              ///< and ranks
  int microbatches = 1;        ///< in a step; a step ends with an empty pipe, so take many
  bool vertical_sync = false;  ///< all stages use the version that the first one used
  StageSizes sizes = {};       ///< of what is kept and sent
};

/// 1F1B in which stage s of P updates after the backward pass of every microbatch (Narayanan et
/// al., "PipeDream: generalized pipeline parallelism for DNN training", SOSP'19). Forward and
/// backward of microbatch m use the version that stage s had at its forward, pipedream_version().
/// With w(t) for the weights after t updates:
///
///     w(t+1) = w(t) - eta grad f(w_1(t - P + 1), ..., w_P(t)), versions below 0 being 0.
///
/// With vertical sync every stage uses the first stage's version, t - P + 1.
[[nodiscard]] inline Orders pipedream_orders(int stages, int microbatches,
                                             bool vertical_sync = false) {
  Orders orders = one_f_one_b_orders(stages, microbatches);
  orders.name =
      text("PipeDream P=", stages, " M=", microbatches, vertical_sync ? ", vertical sync" : "");
  orders.vertical_sync = vertical_sync;
  for (auto& list : orders.ranks) {
    std::vector<Order> updated;
    updated.reserve(list.size() + list.size() / 2);
    for (const Order& order : list) {
      updated.push_back(order);
      if (order.kind == Kind::backward) updated.push_back({Kind::update, order.stage, order.item});
    }
    list = std::move(updated);
  }
  return orders;
}

/// How many updates the weights have seen with which `stage` of `stages` computes `microbatch`.
[[nodiscard]] constexpr int pipedream_version(int stages, int stage, int microbatch,
                                              bool vertical_sync = false) noexcept {
  return std::max(0, microbatch - (stages - 1 - (vertical_sync ? 0 : stage)));
}

/// Versions that `stage` of `stages` keeps at once: one for each microbatch that it has under way,
/// stages - stage, where a step has enough of them; with vertical sync as many as the first stage.
[[nodiscard]] constexpr int pipedream_versions(int stages, int stage, int microbatches,
                                               bool vertical_sync = false) noexcept {
  const int behind = stages - 1 - (vertical_sync ? 0 : stage);
  if (behind == 0 || microbatches == 1) return 1;
  return 1 + std::clamp(microbatches - behind, 1, behind);
}

/// pipedream_orders, woven. The first part of a stage's weights holds version 0 when a step begins,
/// and the last version when it ends.
[[nodiscard]] inline Schedule pipedream(const PipeDreamOptions& options) {
  return weave(pipedream_orders(options.stages, options.microbatches, options.vertical_sync),
               options.sizes);
}

}  // namespace heddle::inline v0::schedule
