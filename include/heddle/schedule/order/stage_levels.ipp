// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// Definitions of stage_levels.hpp.

#include <algorithm>
#include <cstddef>
#include <string>
#include <vector>

#include <heddle/core/contract.hpp>
#include <heddle/core/linkage.hpp>
#include <heddle/core/text.hpp>
#include <heddle/schedule/order/stage_graph.hpp>
#include <heddle/schedule/order/stage_levels.hpp>

namespace heddle::inline v0::impl {

HEDDLE_INLINE std::vector<int> stage_levels(const StageGraph& graph) {
  expects(graph.stages >= 0, [&] {
    return ErrorInfo{"heddle::StageGraph", "the number of stages is negative",
                     text("stages = ", graph.stages)};
  });
  const auto stages = static_cast<std::size_t>(graph.stages);
  std::vector<int> levels(stages, 0);
  std::vector<int> inputs(stages, 0);  // the number of inputs without a level
  for (const StageGraph::Edge& edge : graph.edges) {
    expects(+edge.from < stages && +edge.to < stages, [&] {
      return ErrorInfo{"heddle::StageGraph", "the stage graph has an edge to no stage",
                       text(edge.from, " -> ", edge.to, ", stages 0 to ", graph.stages - 1)};
    });
    inputs[+edge.to] += edge.at == Kind::forward;
  }
  std::vector<Stage> ready;
  for (std::size_t s = 0; s < stages; ++s)
    if (inputs[s] == 0) ready.push_back(Stage{s});
  for (std::size_t next = 0; next < ready.size(); ++next) {
    for (const StageGraph::Edge& edge : graph.edges) {
      if (edge.from != ready[next] || edge.at != Kind::forward) continue;
      levels[+edge.to] = std::max(levels[+edge.to], levels[+edge.from] + 1);
      if (--inputs[+edge.to] == 0) ready.push_back(edge.to);
    }
  }
  expects(ready.size() == stages, [&] {
    std::string waiting;
    for (std::size_t s = 0; s < stages; ++s)
      if (inputs[s] > 0) waiting += text(waiting.empty() ? "" : ", ", s);
    return ErrorInfo{"heddle::StageGraph", "the stage graph has a cycle", text("stages ", waiting),
                     "remove an edge between them"};
  });
  return levels;
}

}  // namespace heddle::inline v0::impl
