// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// FrontierExpansion: follows all edges of a frontier of a graph, by an interchangeable policy of
/// balance. For search loops of your own; GraphTraversal is one.

#include <algorithm>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include <Kokkos_Core.hpp>

#include <heddle/kernel/view.hpp>
#include <heddle/systems/graph_load_balance/frontier_balance.hpp>
#include <heddle/systems/graph_load_balance/graph.hpp>
#include <heddle/systems/graph_load_balance/impl/frontier_kernels.hpp>

namespace heddle::inline v0::systems {

/// A visitor says what a step does with the edges of a frontier, by two functions for kernels.
/// `value(node)` is called once for each active node before any edge is followed. `follow(edge,
/// value)` is called once for each edge of the active nodes, with the value of the node where the
/// edge begins. Several threads call it at the same time, in any order.
template <class V>
concept EdgeVisitor = std::copy_constructible<V> &&
    requires(const V& visitor, std::int32_t node, std::int64_t edge, std::int64_t value) {
  { visitor.value(node) } -> std::same_as<std::int64_t>;
  visitor.follow(edge, value);
};

/// A graph in the memory of `Exec`, in the form that its balance policy reads, with the arrays that
/// a step needs. A step follows all edges of a frontier. The policies `nodes` and `edges` divide
/// work by what is stored, the others by the edges: `decomposition` needs running sums of degrees
/// in each step, `splitting` divides nodes once, when the graph is copied, and `hierarchy` launches
/// several kernels for a step. With `edges`, each step looks at all edges of the graph.
template <kernel::ExecutionSpace Exec>
class FrontierExpansion {
 public:
  /// An array of 32-bit integers in the memory of `Exec`.
  using Numbers = Kokkos::View<std::int32_t*, typename Exec::memory_space>;

  /// Copies the graph. Runs on `exec`.
  /// @throws contract_error if the graph or the options are wrong, see check().
  FrontierExpansion(const Exec& exec, const Graph& graph, const FrontierOptions& options = {});
  FrontierExpansion(const FrontierExpansion&) = delete;  // a copy would share the marks of steps
  FrontierExpansion& operator=(const FrontierExpansion&) = delete;

  /// Returns the number of nodes.
  [[nodiscard]] std::int64_t nodes() const { return m_nodes; }
  /// Returns the number of edges.
  [[nodiscard]] std::int64_t edges() const { return m_edges; }
  /// Returns by edge the node where it ends.
  [[nodiscard]] Numbers ends() const { return m_ends; }
  /// Returns the lengths by edge. It is empty if the graph stores none.
  [[nodiscard]] Numbers weights() const { return m_weights; }
  /// Returns the words (32-bit integers) that store the graph. They equal graph_words().
  [[nodiscard]] std::int64_t words() const {
    return static_cast<std::int64_t>(m_ends.extent(0) + m_weights.extent(0) + m_from.extent(0) +
                                     m_offsets.extent(0) + m_first.extent(0));
  }

  /// Follows all edges of the first `active` nodes of `frontier`, which are distinct. Appends the
  /// loads of its kernels to `run`. It returns when all edges have been followed.
  template <EdgeVisitor Visitor>
  void expand(const Numbers& frontier, std::int64_t active, const Visitor& visitor,
              FrontierRun& run);

 private:
  using Lengths = impl::GraphArray<std::int64_t, Exec>;
  using Range = Kokkos::RangePolicy<Exec, Kokkos::IndexType<std::int64_t>>;

  template <class Visitor>
  void expand_pieces(const Numbers& frontier, std::int64_t active, std::int64_t largest,
                     const Visitor& visitor, FrontierRun& run) const;
  /// Sums the lengths of the active nodes' rows. Returns the sum of all.
  [[nodiscard]] std::int64_t sum_rows(const Numbers& frontier, std::int64_t active,
                                      const Numbers& rows) const;
  template <class Kernel>
  void launch(const char* label, std::int64_t workers, const Kernel& kernel,
              FrontierRun& run) const;
  [[nodiscard]] Numbers copied(const char* label, std::span<const std::int32_t> values) const;
  template <class Array>
  [[nodiscard]] Array allocated(const char* label, std::int64_t size) const {
    return Array(Kokkos::view_alloc(m_exec, Kokkos::WithoutInitializing, std::string(label)),
                 static_cast<std::size_t>(size));
  }

  Exec m_exec;
  FrontierBalance m_balance;
  std::int64_t m_most = 0, m_workers = 0;  // edges of a piece; workers of a decomposition
  std::int64_t m_nodes, m_edges, m_steps = 0;
  Numbers m_ends, m_weights;  // by edge
  Numbers m_from;             // by edge, of coordinates
  Numbers m_offsets;          // by node; by part if nodes are split
  Numbers m_first;            // by node: its first part
  Lengths m_active;           // by node: the last step in which it was active
  Lengths m_before;           // by node or part: the value at the beginning of the step
  Lengths m_sums;             // by position in the frontier
  Numbers m_list, m_rest;     // active parts; or nodes with a rest, of two sub-iterations
  Numbers m_count;            // of m_rest
};

template <kernel::ExecutionSpace Exec>
FrontierExpansion<Exec>::FrontierExpansion(const Exec& exec, const Graph& graph,
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
    m_active = allocated<Lengths>("heddle::kernel::graph_active", m_nodes);
    Kokkos::deep_copy(m_exec, m_active, 0);
  } else if (splits) {
    const NodeParts split = split_nodes(graph, static_cast<std::int32_t>(m_most));
    m_first = copied("heddle::kernel::graph_first_parts", split.first);
    m_offsets = copied("heddle::kernel::graph_part_offsets", split.offsets);
    rows = split.parts();
  } else {
    m_offsets = copied("heddle::kernel::graph_offsets", graph.offsets);
  }
  m_before = allocated<Lengths>("heddle::kernel::graph_before", rows);
  if (splits || m_balance == FrontierBalance::decomposition)
    m_sums = allocated<Lengths>("heddle::kernel::graph_sums", m_nodes + 1);
  if (m_most > 0) m_list = allocated<Numbers>("heddle::kernel::graph_list", rows);
  if (m_balance == FrontierBalance::hierarchy) {
    m_rest = allocated<Numbers>("heddle::kernel::graph_rest", m_nodes);
    m_count = allocated<Numbers>("heddle::kernel::graph_rest_count", 1);
  }
  m_exec.fence("heddle::systems::FrontierExpansion::FrontierExpansion");  // `from` may go
}

template <kernel::ExecutionSpace Exec>
auto FrontierExpansion<Exec>::copied(const char* label, std::span<const std::int32_t> values) const
    -> Numbers {
  const auto array = allocated<Numbers>(label, static_cast<std::int64_t>(values.size()));
  const Kokkos::View<const std::int32_t*, Kokkos::HostSpace,
                     Kokkos::MemoryTraits<Kokkos::Unmanaged>>
      from(values.data(), values.size());
  Kokkos::deep_copy(m_exec, array, from);
  m_exec.fence("heddle::systems::FrontierExpansion::copied");
  return array;
}

template <kernel::ExecutionSpace Exec>
template <EdgeVisitor Visitor>
void FrontierExpansion<Exec>::expand(const Numbers& frontier, std::int64_t active,
                                     const Visitor& visitor, FrontierRun& run) {
  ++m_steps;
  if (m_balance == FrontierBalance::splitting) {
    const std::int64_t parts = sum_rows(frontier, active, m_first);
    Kokkos::parallel_for(
        "heddle::kernel::graph_mirror", Range(m_exec, 0, active),
        impl::MirrorToParts<Exec, Visitor>{visitor, frontier, m_first, m_sums, m_before, m_list});
    launch("heddle::kernel::graph_expand_parts", parts,
           impl::ExpandRows<Exec, Visitor>{{}, visitor, m_list, m_offsets, m_before}, run);
    return;
  }
  std::int32_t largest = 0;
  const Numbers offsets = m_balance == FrontierBalance::hierarchy ? m_offsets : Numbers{};
  Kokkos::parallel_reduce(
      "heddle::kernel::graph_copy_values", Range(m_exec, 0, active),
      impl::ActiveValues<Exec, Visitor>{visitor, frontier, offsets, m_before, m_active, m_steps},
      Kokkos::Max<std::int32_t>(largest));
  if (m_balance == FrontierBalance::nodes) {
    launch("heddle::kernel::graph_expand_nodes", active,
           impl::ExpandRows<Exec, Visitor>{{}, visitor, frontier, m_offsets, m_before}, run);
  } else if (m_balance == FrontierBalance::edges) {
    launch("heddle::kernel::graph_expand_edges", m_edges,
           impl::ExpandEdges<Exec, Visitor>{{}, visitor, m_from, m_active, m_before, m_steps}, run);
  } else if (m_balance == FrontierBalance::decomposition) {
    const std::int64_t edges = sum_rows(frontier, active, m_offsets);
    const std::int64_t workers = std::min(m_workers, edges);
    launch("heddle::kernel::graph_expand_shares", workers,
           impl::ExpandShares<Exec, Visitor>{
               {}, visitor, frontier, m_offsets, m_before, m_sums, active, edges, workers},
           run);
  } else {
    expand_pieces(frontier, active, largest, visitor, run);
  }
}

template <kernel::ExecutionSpace Exec>
template <class Visitor>
void FrontierExpansion<Exec>::expand_pieces(const Numbers& frontier, std::int64_t active,
                                            std::int64_t largest, const Visitor& visitor,
                                            FrontierRun& run) const {
  Numbers list = frontier, rest = m_rest, spare = m_list;
  for (std::int64_t done = 0; done < largest; done += m_most) {
    Kokkos::deep_copy(m_exec, m_count, 0);
    launch("heddle::kernel::graph_expand_pieces", active,
           impl::ExpandPieces<Exec, Visitor>{
               {}, visitor, list, m_offsets, m_before, rest, m_count, done, m_most},
           run);
    std::int32_t with_rest = 0;
    Kokkos::deep_copy(m_exec, with_rest, Kokkos::subview(m_count, 0));
    m_exec.fence("heddle::systems::FrontierExpansion::expand_pieces");
    active = with_rest;
    list = rest;
    std::swap(rest, spare);
  }
}

template <kernel::ExecutionSpace Exec>
std::int64_t FrontierExpansion<Exec>::sum_rows(const Numbers& frontier, std::int64_t active,
                                               const Numbers& rows) const {
  std::int64_t sum = 0;
  Kokkos::parallel_scan("heddle::kernel::graph_sum_rows", Range(m_exec, 0, active),
                        impl::ActiveSums<Exec>{frontier, rows, m_sums}, sum);
  m_exec.fence("heddle::systems::FrontierExpansion::sum_rows");
  return sum;
}

template <kernel::ExecutionSpace Exec>
template <class Kernel>
void FrontierExpansion<Exec>::launch(const char* label, std::int64_t workers, const Kernel& kernel,
                                     FrontierRun& run) const {
  if (workers == 0) return;
  FrontierLoad load;
  Kokkos::parallel_reduce(label, Range(m_exec, 0, workers), kernel, load);
  run.launches.push_back(load);
}

}  // namespace heddle::inline v0::systems
