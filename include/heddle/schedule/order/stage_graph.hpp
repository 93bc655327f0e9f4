// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// StageGraph: says which stages use the output of which stage.

#include <vector>

#include <heddle/core/index.hpp>
#include <heddle/core/linkage.hpp>
#include <heddle/schedule/action.hpp>

namespace heddle::inline v0 {

/// A directed graph over the stages 0 .. stages-1. A model without branches is a chain.
struct StageGraph {
  /// An edge: stage `to` uses the output of stage `from`.
  struct Edge {
    Stage from;  ///< the earlier stage
    Stage to;    ///< the later stage
    /// The pass of `to` that reads the output. Forward: the output is an input of the forward pass,
    /// and its gradient comes back. Backward: only the backward pass reads it, as for a loss that
    /// two branches share. Then each branch computes its own gradients, and none comes back.
    Kind at = Kind::forward;

    friend constexpr bool operator==(const Edge&, const Edge&) = default;
  };

  int stages = 0;  ///< the number of stages; 0: a chain over all stages that the orders name
  std::vector<Edge> edges = {};  ///< the edges, in any order
  /// If true, a stage may be on several ranks, each with its own microbatches. Their gradients are
  /// summed before the update.
  bool replicas = false;

  /// Returns the graph 0 -> 1 -> ... -> stages - 1.
  /// @throws contract_error if `stages` is less than 1.
  [[nodiscard]] static StageGraph chain(int stages);
  /// Returns the same chain, with `replicas` set.
  /// @throws contract_error if `stages` is less than 1.
  [[nodiscard]] static StageGraph replicated_chain(int stages);

  friend bool operator==(const StageGraph&, const StageGraph&) = default;
};

}  // namespace heddle::inline v0

#if HEDDLE_DEFINES_SCHEDULE
#include <heddle/schedule/order/stage_graph.ipp>
#endif
