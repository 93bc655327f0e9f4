// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// Definitions of stage_graph.hpp.

#include <heddle/core/contract.hpp>
#include <heddle/core/linkage.hpp>
#include <heddle/core/text.hpp>
#include <heddle/schedule/order/stage_graph.hpp>

namespace heddle::inline v0 {

HEDDLE_INLINE StageGraph StageGraph::chain(int stages) {
  expects(stages >= 1, [&] {
    return ErrorInfo{"heddle::StageGraph::chain", "a model needs at least one stage",
                     text("stages = ", stages)};
  });
  StageGraph graph{stages};
  for (int stage = 0; stage + 1 < stages; ++stage)
    graph.edges.push_back({Stage{stage}, Stage{stage + 1}});
  return graph;
}

HEDDLE_INLINE StageGraph StageGraph::replicated_chain(int stages) {
  StageGraph graph = chain(stages);
  graph.replicas = true;
  return graph;
}

}  // namespace heddle::inline v0
