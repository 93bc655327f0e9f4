// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// The five rules by which the benchmark validates the result of a search. They read the list of
/// edges and the result only, and share no code with the construction or with the searches.

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <limits>
#include <string>
#include <vector>

#include <Kokkos_Core.hpp>

#include <heddle/collective/all_reduce.hpp>
#include <heddle/collective/operations.hpp>
#include <heddle/comm/communicator.hpp>
#include <heddle/core/text.hpp>

#include "edges.hpp"

namespace graph500 {

/// The result of a search: by vertex its parent and its distance; both are -1 if no path leads
/// there. The root is its own parent.
struct Tree {
  std::int64_t root = 0;
  std::vector<std::int64_t> parents, distances;
};

inline constexpr std::array<const char*, 5> rules{
    "the parents form a tree from the root, without cycles",
    "along an edge of the tree the distance grows as it should",
    "along an edge of the graph distances differ by at most its length",
    "the tree spans the component of the root",
    "an edge of the tree is an edge of the graph",
};

/// What validate() found.
struct Verdict {
  static constexpr std::int64_t none = std::numeric_limits<std::int64_t>::max();
  std::array<std::int64_t, rules.size()> broken{none, none, none, none, none};  ///< a vertex
  std::int64_t edges = 0;  ///< edges of the list, each once, in the component of the root

  [[nodiscard]] bool valid() const {
    return std::ranges::all_of(broken, [](std::int64_t vertex) { return vertex == none; });
  }
  [[nodiscard]] bool breaks(int rule) const {
    return broken[static_cast<std::size_t>(rule - 1)] != none;
  }
  /// Returns the rules that are broken, each with a vertex.
  [[nodiscard]] std::string text() const {
    std::string all;
    for (std::size_t r = 0; r < rules.size(); ++r)
      if (broken[r] != none)
        all += heddle::text(all.empty() ? "" : "; ", "rule ", r + 1, " at vertex ", broken[r], ": ",
                            rules[r]);
    return all;
  }
};

/// Validates a breadth-first search, or shortest paths if the edges are `weighted`. Every rank has
/// the whole result and its slice of the edges; all of them return the same.
[[nodiscard]] inline Verdict validate(const Tree& tree, const EdgeList& list, bool weighted,
                                      const heddle::Communicator& comm) {
  Verdict verdict;
  const std::int64_t count = list.vertices;
  const auto parent = [&](std::int64_t v) { return tree.parents[static_cast<std::size_t>(v)]; };
  const auto distance = [&](std::int64_t v) { return tree.distances[static_cast<std::size_t>(v)]; };
  const auto report = [&](int rule, std::int64_t vertex) {
    std::int64_t& first = verdict.broken[static_cast<std::size_t>(rule - 1)];
    first = std::min(first, vertex);
  };

  // Rule 1. Follows parents up to a vertex that is known to lead to the root.
  enum State : std::uint8_t { open, on_path, good, bad };
  std::vector<State> state(static_cast<std::size_t>(count), open);
  if (parent(tree.root) == tree.root && distance(tree.root) == 0)
    state[static_cast<std::size_t>(tree.root)] = good;
  else
    report(1, tree.root);
  std::vector<std::int64_t> path;
  for (std::int64_t v = 0; v < count; ++v) {
    if (parent(v) == -1) continue;
    path.clear();
    std::int64_t at = v;
    while (at >= 0 && at < count && state[static_cast<std::size_t>(at)] == open) {
      state[static_cast<std::size_t>(at)] = on_path;
      path.push_back(at);
      at = parent(at);
    }
    const bool leads = at >= 0 && at < count && state[static_cast<std::size_t>(at)] == good;
    for (const std::int64_t passed : path)
      state[static_cast<std::size_t>(passed)] = leads ? good : bad;
    if (!leads) report(1, v);
  }

  // Rule 2, and whether a vertex is reached according to both of its numbers.
  const auto has_parent = [&](std::int64_t v) {
    return v != tree.root && parent(v) >= 0 && parent(v) < count;
  };
  for (std::int64_t v = 0; v < count; ++v) {
    if ((parent(v) == -1) != (distance(v) == -1)) report(4, v);
    if (!has_parent(v)) continue;
    const std::int64_t step = distance(v) - distance(parent(v));
    if (weighted ? step < 1 : step != 1) report(2, v);
  }

  // Rules 3, 4 and 5 read the edges.
  const Kokkos::View<std::uint8_t*, Kokkos::HostSpace> joined("graph500::joined",
                                                              static_cast<std::size_t>(count));
  for (const Edge& edge : list.mine) {
    const std::int64_t u = edge.from, v = edge.to, length = weighted ? edge.weight : 1;
    const std::int64_t lower = std::min(u, v);
    if ((distance(u) == -1) != (distance(v) == -1)) {
      report(4, lower);
      continue;
    }
    if (distance(u) == -1) continue;
    ++verdict.edges;
    if (std::abs(distance(u) - distance(v)) > length) report(3, lower);
    const auto join = [&](std::int64_t child, std::int64_t above) {
      if (parent(child) == above && (!weighted || distance(child) - distance(above) == length))
        joined(static_cast<std::size_t>(child)) = 1;
    };
    join(u, v);
    join(v, u);
  }
  const Kokkos::DefaultHostExecutionSpace host;
  heddle::all_reduce(host, joined, heddle::Max{}, comm);
  for (std::int64_t v = 0; v < count; ++v)
    if (parent(v) != -1 && v != tree.root && joined(static_cast<std::size_t>(v)) == 0) report(5, v);

  const Kokkos::View<std::int64_t*, Kokkos::HostSpace, Kokkos::MemoryTraits<Kokkos::Unmanaged>>
      broken(verdict.broken.data(), verdict.broken.size());
  heddle::all_reduce(host, broken, heddle::Min{}, comm);
  verdict.edges = heddle::all_reduce(verdict.edges, heddle::Sum{}, comm);
  return verdict;
}

}  // namespace graph500
