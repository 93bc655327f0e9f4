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

namespace heddle::inline v0 {

/// A directed graph over the stages 0 .. stages-1. Models are chains unless they have branches.
struct StageGraph {
  /// The output of `from` is an input of `to`.
  struct Edge {
    Stage from;  ///< the earlier stage
    Stage to;    ///< the later one
  };

  int stages = 0;           ///< numbered from 0 on
  std::vector<Edge> edges;  ///< in any order

  /// 0 -> 1 -> ... -> stages - 1.
  [[nodiscard]] static StageGraph chain(int stages) {
    expects(stages >= 1, [&] {
      return Complaint{"heddle::StageGraph::chain", "a model has at least one stage",
                       text("stages = ", stages)};
    });
    StageGraph graph{stages, {}};
    for (int stage = 0; stage + 1 < stages; ++stage)
      graph.edges.push_back({Stage{stage}, Stage{stage + 1}});
    return graph;
  }
};

}  // namespace heddle::inline v0
