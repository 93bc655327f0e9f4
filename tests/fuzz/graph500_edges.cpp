// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors

// Lists of edges of the example 42_graph500. The slices of three ranks are the list of one.

#include <cstddef>
#include <cstdint>

#include "../../examples/42_graph500/edges.hpp"
#include "support.hpp"

namespace {

bool same(const graph500::Edge& a, const graph500::Edge& b) {
  return a.from == b.from && a.to == b.to && a.weight == b.weight;
}

}  // namespace

int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  fuzz::accepts([&] {
    const graph500::EdgeList all = graph500::edges_of(fuzz::text_of(data, size), "edges", 1, 0);
    fuzz::check(static_cast<std::int64_t>(all.mine.size()) == all.edges && all.edges > 0,
                "one rank does not have all edges");
    for (const graph500::Edge& edge : all.mine)
      fuzz::check(edge.from >= 0 && edge.to >= 0 && edge.from < all.vertices &&
                      edge.to < all.vertices && edge.weight >= 1 && edge.weight <= all.heaviest,
                  "an edge is out of range");
    std::size_t next = 0;
    for (int rank = 0; rank < 3; ++rank)
      for (const graph500::Edge& edge :
           graph500::edges_of(fuzz::text_of(data, size), "edges", 3, rank).mine)
        fuzz::check(next < all.mine.size() && same(edge, all.mine[next++]),
                    "the slices of three ranks are not the list");
    fuzz::check(next == all.mine.size(), "the slices of three ranks lack edges");
  });
  return 0;
}
