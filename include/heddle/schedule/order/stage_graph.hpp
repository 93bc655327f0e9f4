// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// StageGraph: which stage's output is which stage's input.

#include <cstdint>
#include <utility>
#include <vector>

#include <heddle/core/contract.hpp>
#include <heddle/core/index.hpp>
#include <heddle/core/text.hpp>
#include <heddle/schedule/action.hpp>

namespace heddle::inline v0 {

/// A directed graph over the stages 0 .. stages-1. Models are chains unless they have branches.
struct StageGraph {
  /// The output of `from` is used by `to`.
  struct Edge {
    Stage from;         ///< the earlier stage
    Stage to;           ///< the later one
    Kind at = Kind::forward;  ///< F: an input of its forward, whose gradient comes back. B: read by
                              ///< its backward only, as by a loss that two branches share: each of
                              ///< them derives its own side, and nothing comes back

    friend constexpr bool operator==(const Edge&, const Edge&) = default;
  };

  int stages = 0;  ///< numbered from 0 on; 0: a chain over all stages that orders name
  std::vector<Edge> edges = {};  ///< in any order
  bool replicas = false;  ///< a stage may be on several ranks, each with microbatches of its own;
                          ///< their gradients are summed before the update

  /// 0 -> 1 -> ... -> stages - 1.
  [[nodiscard]] static StageGraph chain(int stages) {
    expects(stages >= 1, [&] {
      return Complaint{"heddle::StageGraph::chain", "a model has at least one stage",
                       text("stages = ", stages)};
    });
    StageGraph graph{stages};
    for (int stage = 0; stage + 1 < stages; ++stage)
      graph.edges.push_back({Stage{stage}, Stage{stage + 1}});
    return graph;
  }
  /// The same chain, with its stages on several ranks each.
  [[nodiscard]] static StageGraph replicated_chain(int stages) {
    StageGraph graph = chain(stages);
    graph.replicas = true;
    return graph;
  }

  friend bool operator==(const StageGraph&, const StageGraph&) = default;
};

}  // namespace heddle::inline v0
