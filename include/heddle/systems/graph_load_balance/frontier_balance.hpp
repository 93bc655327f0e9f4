// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// FrontierBalance: how the edges of a graph's active nodes are divided among workers, such as the
/// threads of a GPU. Everything here is computed without running a kernel. systems::GraphTraversal
/// divides its frontiers in the same way.

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include <heddle/core/linkage.hpp>
#include <heddle/systems/graph_load_balance/graph.hpp>

namespace heddle::inline v0::systems {

/// The policy by which the edges of the active nodes are divided among workers. The policies are
/// those of Raval et al., "Dynamic load balancing strategies for graph applications on GPUs"
/// (arXiv 1711.00231).
enum class FrontierBalance : std::uint8_t {
  nodes,          ///< one worker for each active node, on compressed sparse rows
  edges,          ///< one worker for each edge of the graph, active or not, on coordinates
  decomposition,  ///< equal shares of the active edges, by running sums of degrees
  splitting,      ///< one worker for each part of an active node, see NodeParts
  hierarchy,      ///< sub-iterations, in each of which a worker has at most max_degree edges
};

/// The policy and its numbers.
struct FrontierOptions {
  FrontierBalance balance = FrontierBalance::decomposition;  ///< the policy
  /// The most edges of a worker, for `splitting` and `hierarchy`; degree_limit() if it is empty.
  std::optional<std::int32_t> max_degree{};
  /// The number of workers, for `decomposition`. If it is empty, GraphTraversal uses the
  /// concurrency of its execution space, and frontier_loads() throws.
  std::optional<std::int64_t> workers{};
};

/// The active edges that the workers of one kernel launch have.
struct FrontierLoad {
  std::int64_t workers = 0;  ///< number of workers
  std::int64_t edges = 0;    ///< number of edges of all workers
  std::int64_t least = 0;    ///< number of edges of the worker with the fewest
  std::int64_t most = 0;     ///< number of edges of the worker with the most

  /// Returns the largest number of edges of a worker over the mean. 1 if there are no edges.
  [[nodiscard]] double imbalance() const noexcept {
    return edges == 0 ? 1
                      : static_cast<double>(most) * static_cast<double>(workers) /
                            static_cast<double>(edges);
  }
  friend bool operator==(const FrontierLoad&, const FrontierLoad&) = default;
};

/// A record of what a traversal of a graph did.
struct FrontierRun {
  std::int64_t steps = 0;              ///< number of frontiers that were not empty
  std::vector<FrontierLoad> launches;  ///< the expanding kernels, in order

  /// Returns the number of edges that were followed.
  [[nodiscard]] std::int64_t edges() const noexcept;
  /// Returns the sum over the launches of the largest number of edges of a worker. It is the time
  /// of the traversal if every worker has a core and follows one edge per unit of time.
  [[nodiscard]] std::int64_t critical_edges() const noexcept;
  /// Returns the mean of the launches' imbalances, weighted by their edges. It is the time that all
  /// workers spend, waiting included, over the time in which they follow edges. 1 if no edge was
  /// followed.
  [[nodiscard]] double imbalance() const noexcept;
};

/// The active edges of one worker of a decomposition.
struct EdgeShare {
  std::size_t position = 0;  ///< the first one belongs to this node of the frontier
  std::int64_t offset = 0;   ///< the number of the first one among the edges of this node
  std::int64_t count = 0;    ///< number of edges; they may belong to several nodes

  friend bool operator==(const EdgeShare&, const EdgeShare&) = default;
};

/// Returns the share of worker `worker` of `workers` workers in the active edges, by even_share()
/// and a binary search. The numbers of edges of two workers differ by at most 1. A share without
/// edges begins nowhere: its position and its offset are 0.
/// @param sums running sums of the degrees of the frontier's nodes, from 0 to all active edges
/// @param worker the worker, from 0 on
/// @param workers number of workers
/// @throws contract_error if there is no sum, or if `worker` is not a worker.
[[nodiscard]] EdgeShare decomposed_share(std::span<const std::int64_t> sums, std::int64_t worker,
                                         std::int64_t workers);

/// Returns the active edges of each worker in each kernel launch that expands `frontier`, in the
/// order of the frontier. Only `hierarchy` has several launches: one for each max_degree edges of
/// the frontier's largest degree, rounded up. A decomposition has no more workers than edges, and
/// no launch if there are no edges. An empty frontier needs no launch.
/// @throws contract_error if the options are wrong (see check()), if the frontier contains a node
///         that the graph does not have, if a decomposition has no number of workers, or if the
///         offsets of the graph are wrong. Policies that read only the nodes of the frontier check
///         only these.
[[nodiscard]] std::vector<std::vector<std::int64_t>> frontier_loads(
    const Graph& graph, std::span<const std::int32_t> frontier, const FrontierOptions& options);

/// Returns the load of a kernel launch whose workers have these numbers of edges.
[[nodiscard]] FrontierLoad summed_load(std::span<const std::int64_t> edges_by_worker);

/// Returns the words of the graph in the form that the policy reads: coo_words() for `edges`;
/// csr_words() for the others. `splitting` needs nodes + 1 words for the first parts of the nodes
/// and NodeParts::extra() words more.
/// @throws contract_error if the options are wrong (see check()), and as csr_words(). `splitting`
///         checks the whole graph.
[[nodiscard]] std::int64_t graph_words(const Graph& graph, const FrontierOptions& options);

/// Throws contract_error if max_degree or the number of workers is below 1.
void check(const FrontierOptions& options);

}  // namespace heddle::inline v0::systems

#if HEDDLE_DEFINES_SYSTEMS
#include <heddle/systems/graph_load_balance/frontier_balance.ipp>
#endif
