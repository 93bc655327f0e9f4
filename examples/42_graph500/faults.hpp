// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// Twelve faults, each planted in a valid result, that validate() must find.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include <heddle/core/error.hpp>
#include <heddle/core/text.hpp>

#include "validation.hpp"

namespace graph500 {

/// A fault of a breadth-first search, or of shortest paths if `weighted`, and the rule that must
/// find it.
struct Fault {
  const char* name;
  int rule;
  bool weighted;
  std::function<void(Tree&)> plant;
};

/// The vertices and edges where faults can be planted, by the whole list of edges.
class Places {
 public:
  Places(const Tree& tree, const std::vector<Edge>& edges)
      : m_edges(edges), m_children(tree.parents.size(), 0) {
    for (std::size_t v = 0; v < m_children.size(); ++v)
      if (tree.parents[v] >= 0) ++m_children[static_cast<std::size_t>(tree.parents[v])];
  }
  [[nodiscard]] bool leaf(const Tree& tree, std::int64_t v) const {
    return v != tree.root && tree.parents[static_cast<std::size_t>(v)] >= 0 &&
           m_children[static_cast<std::size_t>(v)] == 0;
  }
  [[nodiscard]] bool neighbours(std::int64_t u, std::int64_t v) const {
    return std::ranges::any_of(m_edges, [&](const Edge& edge) {
      return (edge.from == u && edge.to == v) || (edge.from == v && edge.to == u);
    });
  }
  /// Returns the first vertex of which `is` is true.
  template <class Is>
  [[nodiscard]] static std::int64_t first(const Tree& tree, const Is& is) {
    for (std::size_t v = 0; v < tree.parents.size(); ++v)
      if (is(static_cast<std::int64_t>(v))) return static_cast<std::int64_t>(v);
    throw heddle::infeasible({"graph500", "the graph has no place for this fault",
                              heddle::text("it has ", tree.parents.size(), " vertices"),
                              "draw a larger graph, such as --scale 8"});
  }
  /// Calls `plant(leaf, neighbour, weight)` for edges to a leaf until it returns true.
  template <class Plant>
  void at_edge(const Tree& tree, const Plant& plant) const {
    for (const Edge& edge : m_edges) {
      if (edge.from == edge.to) continue;
      if (leaf(tree, edge.to) && plant(edge.to, edge.from, edge.weight)) return;
      if (leaf(tree, edge.from) && plant(edge.from, edge.to, edge.weight)) return;
    }
    (void)first(tree, [](std::int64_t) { return false; });
  }

 private:
  std::vector<Edge> m_edges;
  std::vector<std::int64_t> m_children;
};

[[nodiscard]] inline std::vector<Fault> faults(const Places& places) {
  const auto at = [](std::vector<std::int64_t>& values, std::int64_t v) -> std::int64_t& {
    return values[static_cast<std::size_t>(v)];
  };
  const auto leaf = [&places](const Tree& tree) {
    return Places::first(tree, [&](std::int64_t v) { return places.leaf(tree, v); });
  };
  const auto lost = [](const Tree& tree) {
    return Places::first(
        tree, [&](std::int64_t v) { return tree.parents[static_cast<std::size_t>(v)] == -1; });
  };
  // Hangs a leaf on a neighbour that is farther from the root than its parent.
  const auto detour = [&places, at](Tree& tree, bool weighted) {
    places.at_edge(tree, [&](std::int64_t v, std::int64_t u, std::int64_t weight) {
      const std::int64_t length = weighted ? weight : 1;
      if (at(tree.distances, u) == -1 || at(tree.distances, u) + length <= at(tree.distances, v))
        return false;
      at(tree.parents, v) = u;
      at(tree.distances, v) = at(tree.distances, u) + length;
      return true;
    });
  };
  return {
      {"the root has another parent", 1, false,
       [=](Tree& tree) { at(tree.parents, tree.root) = leaf(tree); }},
      {"a vertex is its own parent", 1, false,
       [=](Tree& tree) {
         const std::int64_t v = leaf(tree);
         at(tree.parents, v) = v;
       }},
      {"two vertices are parents of each other", 1, false,
       [=](Tree& tree) {
         const std::int64_t v = leaf(tree);
         const std::int64_t above = Places::first(tree, [&](std::int64_t u) {
           return u != v && u != tree.root && at(tree.parents, u) >= 0;
         });
         at(tree.parents, v) = above;
         at(tree.parents, above) = v;
       }},
      {"a parent is not a vertex", 1, false,
       [=](Tree& tree) {
         at(tree.parents, leaf(tree)) = static_cast<std::int64_t>(tree.parents.size());
       }},
      {"a parent was not reached", 1, false,
       [=](Tree& tree) { at(tree.parents, leaf(tree)) = lost(tree); }},
      {"a level is too high by 1", 2, false, [=](Tree& tree) { ++at(tree.distances, leaf(tree)); }},
      {"a vertex hangs a level too low", 3, false, [=](Tree& tree) { detour(tree, false); }},
      {"a vertex is lost", 4, false,
       [=](Tree& tree) {
         const std::int64_t v = leaf(tree);
         at(tree.parents, v) = at(tree.distances, v) = -1;
       }},
      {"a vertex of another component is reached", 5, false,
       [=](Tree& tree) {
         const std::int64_t v = lost(tree);
         at(tree.parents, v) = tree.root;
         at(tree.distances, v) = 1;
       }},
      {"an edge of the tree is none of the graph", 5, false,
       [=, &places](Tree& tree) {
         const std::int64_t v = Places::first(tree, [&](std::int64_t u) {
           return at(tree.distances, u) == 2 && places.leaf(tree, u);
         });
         at(tree.parents, v) = Places::first(tree, [&](std::int64_t u) {
           return at(tree.distances, u) == 1 && !places.neighbours(u, v);
         });
       }},
      {"a path is not the shortest", 3, true, [=](Tree& tree) { detour(tree, true); }},
      {"a distance is no sum of weights", 5, true,
       [=](Tree& tree) { ++at(tree.distances, leaf(tree)); }},
  };
}

}  // namespace graph500
