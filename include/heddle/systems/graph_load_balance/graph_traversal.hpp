// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// GraphTraversal: breadth-first search and shortest paths on a graph, by frontiers whose edges are
/// divided among the threads by an interchangeable policy (FrontierBalance).

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include <Kokkos_Core.hpp>

#include <heddle/core/contract.hpp>
#include <heddle/core/text.hpp>
#include <heddle/kernel/view.hpp>
#include <heddle/systems/graph_load_balance/frontier_balance.hpp>
#include <heddle/systems/graph_load_balance/graph.hpp>
#include <heddle/systems/graph_load_balance/impl/frontier_kernels.hpp>

namespace heddle::inline v0::systems {

/// A graph in the memory of `Exec`, in the form that its balance policy reads, with the arrays that
/// a traversal needs. Each step expands a frontier: it follows all edges of the nodes whose
/// distance became smaller in the step before. Distances, steps and edges do not depend on the
/// policy or on the number of threads.
///
/// The policies `nodes` and `edges` divide work by what is stored, the others by the edges:
/// `decomposition` needs running sums of degrees in each step, `splitting` divides nodes once, when
/// the traversal is made, and `hierarchy` launches several kernels for a step. With `edges`, each
/// step looks at all edges of the graph.
template <kernel::ExecutionSpace Exec>
class GraphTraversal {
 public:
  /// Copies the graph. Runs on `exec`.
  /// @throws contract_error if the graph or the options are wrong, see check().
  explicit GraphTraversal(const Exec& exec, const Graph& graph,
                          const FrontierOptions& options = {});

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
    expects(m_edges == 0 || m_weights.extent(0) > 0, [&] {
      return ErrorInfo{where, "the edges have no weights",
                       text("the graph has ", m_edges, " edges and 0 weights"),
                       "Make the graph with EdgeWeights::stored, or call breadth_first()"};
    });
    return run(where, source, m_weights);
  }

  /// Returns the distances of the last call, by node; heddle::unreachable if no path leads there.
  [[nodiscard]] Kokkos::View<const std::int64_t*, typename Exec::memory_space> distances() const {
    return m_distance;
  }

  /// Returns the words (32-bit integers) that store the graph. They equal graph_words().
  [[nodiscard]] std::int64_t words() const {
    return static_cast<std::int64_t>(m_ends.extent(0) + m_weights.extent(0) + m_from.extent(0) +
                                     m_offsets.extent(0) + m_first.extent(0));
  }

 private:
  using Numbers = impl::GraphArray<std::int32_t, Exec>;
  using Lengths = impl::GraphArray<std::int64_t, Exec>;
  using Range = Kokkos::RangePolicy<Exec, Kokkos::IndexType<std::int64_t>>;

  FrontierRun run(const char* where, std::int32_t source, const Numbers& weights);
  void clear(std::int32_t source) const;
  /// Follows all edges of the first `active` nodes of the frontier.
  void expand(const impl::EdgeRelaxation<Exec>& relax, std::int64_t active, FrontierRun& run) const;
  void expand_pieces(const impl::EdgeRelaxation<Exec>& relax, std::int64_t active,
                     std::int64_t largest, FrontierRun& run) const;
  /// Copies the distances of the active nodes. Returns the largest degree, for `hierarchy` only.
  [[nodiscard]] std::int32_t copy_distances(std::int64_t active, std::int32_t step) const;
  /// Sums the lengths of the active nodes' rows. Returns the sum of all.
  [[nodiscard]] std::int64_t sum_rows(std::int64_t active, const Numbers& rows) const;
  template <class Kernel>
  void launch(const char* label, std::int64_t workers, const Kernel& kernel,
              FrontierRun& run) const;
  [[nodiscard]] Numbers copied(const char* label, std::span<const std::int32_t> values) const;
  template <class Array>
  [[nodiscard]] Array allocated(const char* label, std::int64_t size) const {
    return Array(Kokkos::view_alloc(m_exec, Kokkos::WithoutInitializing, std::string(label)),
                 static_cast<std::size_t>(size));
  }
  /// Reads one of the two counters.
  [[nodiscard]] std::int64_t counter(std::size_t which) const {
    std::int32_t value = 0;
    Kokkos::deep_copy(m_exec, value, Kokkos::subview(m_count, which));
    m_exec.fence("heddle::systems::GraphTraversal::counter");
    return value;
  }

  Exec m_exec;
  FrontierBalance m_balance;
  std::int64_t m_most = 0, m_workers = 0;  // edges of a piece; workers of a decomposition
  std::int64_t m_nodes, m_edges;
  Numbers m_ends, m_weights;    // by edge
  Numbers m_from;               // by edge, of coordinates
  Numbers m_offsets;            // by node; by part if nodes are split
  Numbers m_first;              // by node: its first part
  Lengths m_distance;           // by node
  Lengths m_before;             // by node or part: the distance at the beginning of the step
  Lengths m_sums;               // by position in the frontier
  Numbers m_entered, m_active;  // by node: the last step that listed it; in which it was active
  Numbers m_frontier, m_next;   // nodes
  Numbers m_list, m_rest;       // active parts; or nodes with a rest, of two sub-iterations
  Numbers m_count;              // of m_next and of m_rest
};

template <kernel::ExecutionSpace Exec>
GraphTraversal<Exec>::GraphTraversal(const Exec& exec, const Graph& graph,
                                     const FrontierOptions& options)
    : m_exec(exec), m_balance(options.balance), m_nodes(graph.nodes()), m_edges(graph.edges()) {
  check(graph);
  check(options);
  m_workers = options.workers ? *options.workers : exec.concurrency();
  const bool splits = m_balance == FrontierBalance::splitting;
  if (splits || m_balance == FrontierBalance::hierarchy)
    m_most = options.max_degree ? *options.max_degree : degree_limit(graph);
  m_ends = copied("heddle::kernel::graph_ends", graph.ends);
  m_weights = copied("heddle::kernel::graph_weights", graph.weights);
  std::int64_t rows = m_nodes;
  if (m_balance == FrontierBalance::edges) {
    std::vector<std::int32_t> from;
    from.reserve(graph.ends.size());
    for (std::int32_t node = 0; node < graph.nodes(); ++node)
      from.insert(from.end(), static_cast<std::size_t>(graph.degree(node)), node);
    m_from = copied("heddle::kernel::graph_begins", from);
    m_active = allocated<Numbers>("heddle::kernel::graph_active", m_nodes);
  } else if (splits) {
    const NodeParts split = split_nodes(graph, static_cast<std::int32_t>(m_most));
    m_first = copied("heddle::kernel::graph_first_parts", split.first);
    m_offsets = copied("heddle::kernel::graph_part_offsets", split.offsets);
    rows = split.parts();
  } else {
    m_offsets = copied("heddle::kernel::graph_offsets", graph.offsets);
  }
  m_distance = allocated<Lengths>("heddle::kernel::graph_distance", m_nodes);
  m_before = allocated<Lengths>("heddle::kernel::graph_before", rows);
  m_entered = allocated<Numbers>("heddle::kernel::graph_entered", m_nodes);
  m_frontier = allocated<Numbers>("heddle::kernel::graph_frontier", m_nodes);
  m_next = allocated<Numbers>("heddle::kernel::graph_next", m_nodes);
  m_count = allocated<Numbers>("heddle::kernel::graph_count", 2);
  if (splits || m_balance == FrontierBalance::decomposition)
    m_sums = allocated<Lengths>("heddle::kernel::graph_sums", m_nodes + 1);
  if (m_most > 0) m_list = allocated<Numbers>("heddle::kernel::graph_list", rows);
  if (m_balance == FrontierBalance::hierarchy)
    m_rest = allocated<Numbers>("heddle::kernel::graph_rest", m_nodes);
  clear(-1);
  m_exec.fence("heddle::systems::GraphTraversal::GraphTraversal");  // `from` and `graph` may go
}

template <kernel::ExecutionSpace Exec>
auto GraphTraversal<Exec>::copied(const char* label, std::span<const std::int32_t> values) const
    -> Numbers {
  const auto array = allocated<Numbers>(label, static_cast<std::int64_t>(values.size()));
  const Kokkos::View<const std::int32_t*, Kokkos::HostSpace,
                     Kokkos::MemoryTraits<Kokkos::Unmanaged>>
      from(values.data(), values.size());
  Kokkos::deep_copy(m_exec, array, from);
  m_exec.fence("heddle::systems::GraphTraversal::copied");
  return array;
}

template <kernel::ExecutionSpace Exec>
void GraphTraversal<Exec>::clear(std::int32_t source) const {
  Kokkos::parallel_for(
      "heddle::kernel::graph_clear", Range(m_exec, 0, m_nodes),
      impl::ClearDistances<Exec>{m_distance, m_entered, m_active, m_frontier, source});
}

template <kernel::ExecutionSpace Exec>
FrontierRun GraphTraversal<Exec>::run(const char* where, std::int32_t source,
                                      const Numbers& weights) {
  expects(source >= 0 && source < m_nodes, [&] {
    return ErrorInfo{where, text("the graph has no node ", source),
                     text("source = ", source, ", and the graph has ", m_nodes, " nodes"),
                     "Give a node of the graph"};
  });
  FrontierRun run;
  clear(source);
  for (std::int64_t active = 1; active > 0; active = counter(0)) {
    const auto step = static_cast<std::int32_t>(++run.steps);
    Kokkos::deep_copy(m_exec, m_count, 0);
    if (step > 1) std::swap(m_frontier, m_next);
    expand({m_ends, weights, m_distance, m_entered, m_next, m_count, step}, active, run);
  }
  return run;
}

template <kernel::ExecutionSpace Exec>
void GraphTraversal<Exec>::expand(const impl::EdgeRelaxation<Exec>& relax, std::int64_t active,
                                  FrontierRun& run) const {
  if (m_balance == FrontierBalance::splitting) {
    const std::int64_t parts = sum_rows(active, m_first);
    Kokkos::parallel_for(
        "heddle::kernel::graph_mirror", Range(m_exec, 0, active),
        impl::MirrorToParts<Exec>{m_frontier, m_first, m_sums, m_distance, m_before, m_list});
    launch("heddle::kernel::graph_expand_parts", parts,
           impl::ExpandRows<Exec>{{}, relax, m_list, m_offsets, m_before}, run);
    return;
  }
  const std::int32_t largest = copy_distances(active, relax.step);
  if (m_balance == FrontierBalance::nodes) {
    launch("heddle::kernel::graph_expand_nodes", active,
           impl::ExpandRows<Exec>{{}, relax, m_frontier, m_offsets, m_before}, run);
  } else if (m_balance == FrontierBalance::edges) {
    launch("heddle::kernel::graph_expand_edges", m_edges,
           impl::ExpandEdges<Exec>{{}, relax, m_from, m_active, m_before}, run);
  } else if (m_balance == FrontierBalance::decomposition) {
    const std::int64_t edges = sum_rows(active, m_offsets);
    const std::int64_t workers = std::min(m_workers, edges);
    launch("heddle::kernel::graph_expand_shares", workers,
           impl::ExpandShares<Exec>{
               {}, relax, m_frontier, m_offsets, m_before, m_sums, active, edges, workers},
           run);
  } else {
    expand_pieces(relax, active, largest, run);
  }
}

template <kernel::ExecutionSpace Exec>
void GraphTraversal<Exec>::expand_pieces(const impl::EdgeRelaxation<Exec>& relax,
                                         std::int64_t active, std::int64_t largest,
                                         FrontierRun& run) const {
  Numbers list = m_frontier, rest = m_rest, spare = m_list;
  for (std::int64_t done = 0; done < largest; done += m_most) {
    Kokkos::deep_copy(m_exec, Kokkos::subview(m_count, 1), 0);
    launch("heddle::kernel::graph_expand_pieces", active,
           impl::ExpandPieces<Exec>{{}, relax, list, m_offsets, m_before, rest, done, m_most}, run);
    active = counter(1);
    list = rest;
    std::swap(rest, spare);
  }
}

template <kernel::ExecutionSpace Exec>
std::int32_t GraphTraversal<Exec>::copy_distances(std::int64_t active, std::int32_t step) const {
  std::int32_t largest = 0;
  const Numbers offsets = m_balance == FrontierBalance::hierarchy ? m_offsets : Numbers{};
  Kokkos::parallel_reduce(
      "heddle::kernel::graph_copy_distances", Range(m_exec, 0, active),
      impl::ActiveDistances<Exec>{m_frontier, offsets, m_distance, m_before, m_active, step},
      Kokkos::Max<std::int32_t>(largest));
  return largest;
}

template <kernel::ExecutionSpace Exec>
std::int64_t GraphTraversal<Exec>::sum_rows(std::int64_t active, const Numbers& rows) const {
  std::int64_t sum = 0;
  Kokkos::parallel_scan("heddle::kernel::graph_sum_rows", Range(m_exec, 0, active),
                        impl::ActiveSums<Exec>{m_frontier, rows, m_sums}, sum);
  m_exec.fence("heddle::systems::GraphTraversal::sum_rows");
  return sum;
}

template <kernel::ExecutionSpace Exec>
template <class Kernel>
void GraphTraversal<Exec>::launch(const char* label, std::int64_t workers, const Kernel& kernel,
                                  FrontierRun& run) const {
  if (workers == 0) return;
  FrontierLoad load;
  Kokkos::parallel_reduce(label, Range(m_exec, 0, workers), kernel, load);
  run.launches.push_back(load);
}

}  // namespace heddle::inline v0::systems
