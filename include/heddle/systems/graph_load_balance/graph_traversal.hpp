// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// GraphTraversal: breadth-first search and shortest paths on a graph, by frontiers whose edges are
/// divided among the threads by an interchangeable policy (FrontierBalance).

#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>

#include <Kokkos_Core.hpp>

#include <heddle/core/contract.hpp>
#include <heddle/core/text.hpp>
#include <heddle/kernel/view.hpp>
#include <heddle/systems/graph_load_balance/frontier_balance.hpp>
#include <heddle/systems/graph_load_balance/frontier_expansion.hpp>
#include <heddle/systems/graph_load_balance/graph.hpp>
#include <heddle/systems/graph_load_balance/impl/frontier_kernels.hpp>

namespace heddle::inline v0::systems {

/// A graph in the memory of `Exec` with the arrays that a traversal needs. Each step expands a
/// frontier: it follows all edges of the nodes whose distance became smaller in the step before.
/// Distances, steps and edges do not depend on the policy or on the number of threads. See
/// FrontierExpansion for the policies.
template <kernel::ExecutionSpace Exec>
class GraphTraversal {
 public:
  /// Copies the graph. Runs on `exec`.
  /// @throws contract_error if the graph or the options are wrong, see check().
  explicit GraphTraversal(const Exec& exec, const Graph& graph, const FrontierOptions& options = {})
      : m_exec(exec), m_expansion(exec, graph, options) {
    const std::int64_t nodes = m_expansion.nodes();
    m_distance = Lengths(allocation("heddle::kernel::graph_distance"), size(nodes));
    m_entered = Numbers(allocation("heddle::kernel::graph_entered"), size(nodes));
    m_frontier = Numbers(allocation("heddle::kernel::graph_frontier"), size(nodes));
    m_next = Numbers(allocation("heddle::kernel::graph_next"), size(nodes));
    m_count = Numbers(allocation("heddle::kernel::graph_count"), 1);
    clear(-1);
  }

  GraphTraversal(const GraphTraversal&) = delete;
  GraphTraversal& operator=(const GraphTraversal&) = delete;
  /// Moves the graph and the distances. The other traversal can only be assigned to or destroyed.
  GraphTraversal(GraphTraversal&&) = default;
  /// Moves the graph and the distances. The other traversal can only be assigned to or destroyed.
  GraphTraversal& operator=(GraphTraversal&&) = default;
  ~GraphTraversal() = default;

  /// Computes for each node the least number of edges of a path from `source`. Weights are ignored.
  /// It returns when the distances are complete.
  /// @throws contract_error if the graph has no node `source`.
  FrontierRun breadth_first(std::int32_t source) {
    return run("heddle::systems::GraphTraversal::breadth_first", source, {});
  }

  /// Computes for each node the least sum of weights of a path from `source`, by relaxing all edges
  /// of each frontier (Bellman and Ford). It returns when the distances are complete.
  /// @throws contract_error if the graph has no node `source`, or has edges but no weights.
  FrontierRun shortest_paths(std::int32_t source) {
    constexpr const char* where = "heddle::systems::GraphTraversal::shortest_paths";
    const std::int64_t edges = m_expansion.edges();
    expects(edges == 0 || m_expansion.weights().extent(0) > 0, [&] {
      return ErrorInfo{where, "the edges have no weights",
                       text("the graph has ", edges, " edges and 0 weights"),
                       "Make the graph with EdgeWeights::stored, or call breadth_first()"};
    });
    return run(where, source, m_expansion.weights());
  }

  /// Returns the distances of the last call, by node; heddle::unreachable if no path leads there.
  [[nodiscard]] Kokkos::View<const std::int64_t*, typename Exec::memory_space> distances() const {
    return m_distance;
  }

  /// Returns the words (32-bit integers) that store the graph. They equal graph_words().
  [[nodiscard]] std::int64_t words() const { return m_expansion.words(); }

 private:
  using Numbers = impl::GraphArray<std::int32_t, Exec>;
  using Lengths = impl::GraphArray<std::int64_t, Exec>;

  FrontierRun run(const char* where, std::int32_t source, const Numbers& weights);
  void clear(std::int32_t source) const {
    Kokkos::parallel_for(
        "heddle::kernel::graph_clear",
        Kokkos::RangePolicy<Exec, Kokkos::IndexType<std::int64_t>>(m_exec, 0, m_expansion.nodes()),
        impl::ClearDistances<Exec>{m_distance, m_entered, m_frontier, source});
  }
  [[nodiscard]] auto allocation(const char* label) const {
    return Kokkos::view_alloc(m_exec, Kokkos::WithoutInitializing, std::string(label));
  }
  [[nodiscard]] static std::size_t size(std::int64_t count) {
    return static_cast<std::size_t>(count);
  }
  /// Returns the number of nodes of m_next.
  [[nodiscard]] std::int64_t listed() const {
    std::int32_t value = 0;
    Kokkos::deep_copy(m_exec, value, Kokkos::subview(m_count, 0));
    m_exec.fence("heddle::systems::GraphTraversal::listed");
    return value;
  }

  Exec m_exec;
  FrontierExpansion<Exec> m_expansion;
  Lengths m_distance;  // by node
  Numbers m_entered;   // by node; the last step that listed it
  Numbers m_frontier, m_next;
  Numbers m_count;  // of m_next
};

template <kernel::ExecutionSpace Exec>
FrontierRun GraphTraversal<Exec>::run(const char* where, std::int32_t source,
                                      const Numbers& weights) {
  expects(source >= 0 && source < m_expansion.nodes(), [&] {
    return ErrorInfo{
        where, text("the graph has no node ", source),
        text("source = ", source, ", and the graph has ", m_expansion.nodes(), " nodes"),
        "Give a node of the graph"};
  });
  FrontierRun run;
  clear(source);
  for (std::int64_t active = 1; active > 0; active = listed()) {
    const auto step = static_cast<std::int32_t>(++run.steps);
    Kokkos::deep_copy(m_exec, m_count, 0);
    if (step > 1) std::swap(m_frontier, m_next);
    const impl::EdgeRelaxation<Exec> relax{
        m_expansion.ends(), weights, m_distance, m_entered, m_next, m_count, step};
    m_expansion.expand(m_frontier, active, relax, run);
  }
  return run;
}

}  // namespace heddle::inline v0::systems
