// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// Definitions of frontier_balance.hpp.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include <heddle/core/contract.hpp>
#include <heddle/core/internal/enumerator.hpp>
#include <heddle/core/text.hpp>
#include <heddle/layout/share.hpp>
#include <heddle/systems/graph_load_balance/frontier_balance.hpp>
#include <heddle/systems/graph_load_balance/graph.hpp>
#include <heddle/systems/graph_load_balance/impl/checked_graph.hpp>

namespace heddle::inline v0::systems {
namespace impl {

using Loads = std::vector<std::vector<std::int64_t>>;

inline Loads edge_loads(const Graph& graph, std::span<const std::int32_t> frontier) {
  std::vector<bool> active(static_cast<std::size_t>(graph.nodes()), false);
  for (const std::int32_t node : frontier) active[static_cast<std::size_t>(node)] = true;
  std::vector<std::int64_t> load;
  for (std::int32_t node = 0; node < graph.nodes(); ++node)
    load.insert(load.end(), static_cast<std::size_t>(graph.degree(node)),
                active[static_cast<std::size_t>(node)] ? 1 : 0);
  return load.empty() ? Loads{} : Loads{load};
}

inline Loads decomposed_loads(std::span<const std::int64_t> degrees, std::int64_t workers) {
  std::vector<std::int64_t> sums{0};
  for (const std::int64_t degree : degrees) sums.push_back(sums.back() + degree);
  workers = std::min(workers, sums.back());
  std::vector<std::int64_t> load;
  for (std::int64_t w = 0; w < workers; ++w)
    load.push_back(decomposed_share(sums, w, workers).count);
  return load.empty() ? Loads{} : Loads{load};
}

inline Loads split_loads(const NodeParts& split, std::span<const std::int32_t> frontier) {
  std::vector<std::int64_t> load;
  for (const std::int32_t node : frontier) {
    const auto last = static_cast<std::size_t>(split.first[static_cast<std::size_t>(node) + 1]);
    for (auto p = static_cast<std::size_t>(split.first[static_cast<std::size_t>(node)]); p < last;
         ++p)
      load.push_back(split.offsets[p + 1] - split.offsets[p]);
  }
  return {load};
}

inline Loads piece_loads(std::vector<std::int64_t> rest, std::int64_t most) {
  Loads loads;
  while (std::any_of(rest.begin(), rest.end(), [](std::int64_t edges) { return edges > 0; })) {
    auto& load = loads.emplace_back();
    for (std::int64_t& edges : rest) {
      load.push_back(std::min(edges, most));
      edges -= load.back();
    }
    std::erase(rest, 0);
  }
  return loads;
}

}  // namespace impl

HEDDLE_INLINE std::int64_t FrontierRun::edges() const noexcept {
  std::int64_t sum = 0;
  for (const FrontierLoad& load : launches) sum += load.edges;
  return sum;
}

HEDDLE_INLINE std::int64_t FrontierRun::critical_edges() const noexcept {
  std::int64_t sum = 0;
  for (const FrontierLoad& load : launches) sum += load.most;
  return sum;
}

HEDDLE_INLINE double FrontierRun::imbalance() const noexcept {
  const std::int64_t followed = edges();
  double spent = 0;
  for (const FrontierLoad& load : launches)
    spent += static_cast<double>(load.most) * static_cast<double>(load.workers);
  return followed == 0 ? 1 : spent / static_cast<double>(followed);
}

HEDDLE_INLINE EdgeShare decomposed_share(std::span<const std::int64_t> sums, std::int64_t worker,
                                         std::int64_t workers) {
  constexpr const char* where = "heddle::systems::decomposed_share";
  expects(!sums.empty() && sums.front() == 0 && sums.back() >= 0, [&] {
    return ErrorInfo{where, "running sums begin with 0 and ascend",
                     sums.empty()
                         ? std::string("there are none")
                         : text("the first one is ", sums.front(), ", the last one ", sums.back())};
  });
  expects(worker >= 0 && worker < workers, [&] {
    return ErrorInfo{where, "there is no such worker",
                     text("worker = ", worker, ", workers = ", workers)};
  });
  const Share share =
      even_share(static_cast<std::size_t>(sums.back()), static_cast<std::size_t>(workers),
                 static_cast<std::size_t>(worker));
  if (share.count == 0) return {};
  const auto first = static_cast<std::int64_t>(share.first);
  const auto above = std::upper_bound(sums.begin(), sums.end(), first);
  // Finds sums that descend here. All of them are not checked, because a step calls this often.
  expects(above != sums.end() && *(above - 1) <= first, [&] {
    return ErrorInfo{where, "running sums begin with 0 and ascend",
                     text("share ", worker, " begins at edge ", first, ", after sum ",
                          above - sums.begin() - 1)};
  });
  return {static_cast<std::size_t>(above - sums.begin() - 1), first - *(above - 1),
          static_cast<std::int64_t>(share.count)};
}

HEDDLE_INLINE std::vector<std::vector<std::int64_t>> frontier_loads(
    const Graph& graph, std::span<const std::int32_t> frontier, const FrontierOptions& options) {
  constexpr const char* where = "heddle::systems::frontier_loads";
  check(options);
  // Other policies read only the offsets of the frontier's nodes.
  const bool reads_all = options.balance == FrontierBalance::edges ||
                         options.balance == FrontierBalance::splitting ||
                         (options.balance == FrontierBalance::hierarchy && !options.max_degree);
  if (reads_all)
    check(graph);
  else
    impl::expect_sizes(graph);
  std::vector<std::int64_t> degrees;
  for (const std::int32_t node : frontier) {
    expects(node >= 0 && node < graph.nodes(), [&] {
      return ErrorInfo{where, text("the frontier contains node ", node),
                       text("the graph has ", graph.nodes(), " nodes")};
    });
    impl::expect_offsets(graph, node);
    degrees.push_back(graph.degree(node));
  }
  const bool decomposed = options.balance == FrontierBalance::decomposition;
  expects(!decomposed || options.workers.has_value(), [&] {
    return ErrorInfo{where, "a decomposition needs a number of workers", "workers is empty",
                     "Set FrontierOptions::workers"};
  });
  if (frontier.empty()) return {};
  switch (options.balance) {
    case FrontierBalance::nodes: return {degrees};
    case FrontierBalance::edges: return impl::edge_loads(graph, frontier);
    case FrontierBalance::decomposition:
      return impl::decomposed_loads(degrees, options.workers.value_or(1));
    case FrontierBalance::splitting:
      return impl::split_loads(
          impl::parts_of(graph, options.max_degree ? *options.max_degree : impl::limit_of(graph)),
          frontier);
    case FrontierBalance::hierarchy: break;
  }
  return impl::piece_loads(degrees,
                           options.max_degree ? *options.max_degree : impl::limit_of(graph));
}

HEDDLE_INLINE FrontierLoad summed_load(std::span<const std::int64_t> edges_by_worker) {
  FrontierLoad load;
  if (edges_by_worker.empty()) return load;
  load.workers = static_cast<std::int64_t>(edges_by_worker.size());
  load.least = edges_by_worker.front();
  for (const std::int64_t edges : edges_by_worker) {
    load.edges += edges;
    load.least = std::min(load.least, edges);
    load.most = std::max(load.most, edges);
  }
  return load;
}

HEDDLE_INLINE std::int64_t graph_words(const Graph& graph, const FrontierOptions& options) {
  check(options);
  if (options.balance == FrontierBalance::edges) return coo_words(graph);
  if (options.balance != FrontierBalance::splitting) return csr_words(graph);
  check(graph);
  const NodeParts split =
      impl::parts_of(graph, options.max_degree ? *options.max_degree : impl::limit_of(graph));
  return csr_words(graph) + graph.nodes() + 1 + split.extra();
}

HEDDLE_INLINE void check(const FrontierOptions& options) {
  constexpr const char* where = "heddle::systems::FrontierOptions";
  heddle::impl::expect_enumerator(where, "balance", options.balance, FrontierBalance::hierarchy);
  expects(options.max_degree.value_or(1) >= 1, [&] {
    return ErrorInfo{where, "a worker has no edges",
                     text("max_degree = ", *options.max_degree, ", expected at least 1"),
                     "Leave it empty for degree_limit()"};
  });
  expects(options.workers.value_or(1) >= 1, [&] {
    return ErrorInfo{where, "there are no workers",
                     text("workers = ", *options.workers, ", expected at least 1"),
                     "Leave it empty for the concurrency of the execution space"};
  });
}

}  // namespace heddle::inline v0::systems
