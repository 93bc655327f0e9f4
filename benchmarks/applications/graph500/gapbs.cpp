// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
// optional: gapbs bfs.cc

// The reference code of the GAP benchmark suite (github.com/sbeamer/gapbs). It has no library: set
// HEDDLE_GAPBS_INCLUDE_DIR to its folder src.

#include "peers.hpp"

#ifdef HEDDLE_HAS_GAPBS

#include <cstddef>
#include <memory>
#include <unistd.h>
#include <utility>

#define main gapbs_main
#include <bfs.cc>
#undef main

std::optional<searches::Peer> searches::gapbs(const heddle::systems::Graph& graph) {
  pvector<EdgePair<NodeID>> edges;  // each once, because -s adds the other direction
  for (std::int32_t v = 0; v < graph.nodes(); ++v)
    for (std::int32_t e = graph.offsets[static_cast<std::size_t>(v)];
         e < graph.offsets[static_cast<std::size_t>(v) + 1]; ++e)
      if (graph.ends[static_cast<std::size_t>(e)] > v)
        edges.push_back({v, graph.ends[static_cast<std::size_t>(e)]});
  char name[] = "gapbs", scale[] = "-g", size[] = "1", both[] = "-s";
  char* arguments[] = {name, scale, size, both, nullptr};
  optind = 1;  // getopt() begins anew
  CLApp options(4, arguments, "bfs");
  options.ParseArgs();
  Builder builder(options);
  Graph made = builder.MakeGraphFromEL(edges);
  const auto squished = std::make_shared<Graph>(builder.SquishGraph(made));
  return Peer{{}, [squished](std::int32_t root, const auto& timed) {
                pvector<NodeID> parents;
                timed([&] { parents = DOBFS(*squished, root); });
                return std::vector<std::int32_t>(parents.begin(), parents.end());
              }};
}

#else

std::optional<searches::Peer> searches::gapbs(const heddle::systems::Graph&) { return {}; }

#endif
