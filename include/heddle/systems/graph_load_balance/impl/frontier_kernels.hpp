// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// The kernels of FrontierExpansion (the preparation of a frontier, and its expansion by each
/// policy) and of GraphTraversal.

#include <cstdint>

#include <Kokkos_Core.hpp>

#include <heddle/kernel/view.hpp>
#include <heddle/systems/graph_load_balance/frontier_balance.hpp>
#include <heddle/systems/graph_load_balance/graph.hpp>

namespace heddle::inline v0::systems::impl {

/// An array of a traversal, in the memory of `Exec`.
template <class T, kernel::ExecutionSpace Exec>
using GraphArray = Kokkos::View<T*, typename Exec::memory_space>;

/// Writes `unreachable` and clears the marks.
template <kernel::ExecutionSpace Exec>
struct ClearDistances {
  GraphArray<std::int64_t, Exec> distance;
  GraphArray<std::int32_t, Exec> entered, frontier;
  std::int32_t source;
  KOKKOS_FUNCTION void operator()(std::int64_t node) const {
    distance(node) = node == source ? 0 : Kokkos::Experimental::finite_max_v<std::int64_t>;
    entered(node) = 0;
    if (node == source) frontier(0) = source;
  }
};

/// Copies the values of the active nodes, so that all edges of a step start from the values at its
/// beginning. Which nodes become active is then the same in every run. The result is the largest
/// degree.
template <kernel::ExecutionSpace Exec, class Visitor>
struct ActiveValues {
  Visitor visitor;
  GraphArray<const std::int32_t, Exec> frontier, offsets;
  GraphArray<std::int64_t, Exec> before;
  GraphArray<std::int64_t, Exec> active;  // by node: the last step in which it was; or empty
  std::int64_t step;
  KOKKOS_FUNCTION void operator()(std::int64_t i, std::int32_t& most) const {
    const std::int32_t node = frontier(i);
    before(node) = visitor.value(node);
    if (active.extent(0) > 0) active(node) = step;
    if (offsets.extent(0) == 0) return;  // coordinates
    const std::int32_t degree = offsets(node + 1) - offsets(node);
    if (degree > most) most = degree;
  }
};

/// Sums the lengths of the active nodes' rows: their degrees, or their numbers of parts.
template <kernel::ExecutionSpace Exec>
struct ActiveSums {
  GraphArray<const std::int32_t, Exec> frontier, rows;
  GraphArray<std::int64_t, Exec> sums;  // by position, one more than there are active nodes
  KOKKOS_FUNCTION void operator()(std::int64_t i, std::int64_t& sum, bool last) const {
    const std::int32_t node = frontier(i);
    sum += rows(node + 1) - rows(node);
    if (last) {
      if (i == 0) sums(0) = 0;
      sums(i + 1) = sum;
    }
  }
};

/// Lists the parts of the active nodes, and mirrors the value of each node to its parts.
template <kernel::ExecutionSpace Exec, class Visitor>
struct MirrorToParts {
  Visitor visitor;
  GraphArray<const std::int32_t, Exec> frontier, first;
  GraphArray<const std::int64_t, Exec> sums;
  GraphArray<std::int64_t, Exec> before;  // by part
  GraphArray<std::int32_t, Exec> active_parts;
  KOKKOS_FUNCTION void operator()(std::int64_t i) const {
    const std::int32_t node = frontier(i);
    const std::int64_t value = visitor.value(node);
    std::int64_t at = sums(i);
    for (std::int32_t part = first(node); part < first(node + 1); ++part, ++at) {
      before(part) = value;
      active_parts(at) = part;
    }
  }
};

/// The visitor of a traversal: lowers the distances where the edges end, and lists the nodes that
/// it lowers, once.
template <kernel::ExecutionSpace Exec>
struct EdgeRelaxation {
  GraphArray<const std::int32_t, Exec> ends;
  GraphArray<const std::int32_t, Exec> weights;  // empty: every edge has length 1
  GraphArray<std::int64_t, Exec> distance;
  GraphArray<std::int32_t, Exec> entered;  // by node: the last step that listed it
  GraphArray<std::int32_t, Exec> next;
  GraphArray<std::int32_t, Exec> count;  // of `next`
  std::int32_t step;
  KOKKOS_FUNCTION std::int64_t value(std::int32_t node) const { return distance(node); }
  KOKKOS_FUNCTION void follow(std::int64_t edge, std::int64_t start) const {
    const std::int32_t to = ends(edge);
    const std::int64_t length =
        start + (weights.extent(0) > 0 ? static_cast<std::int64_t>(weights(edge)) : 1);
    // Distances only fall, so most edges need no more than a load.
    if (length >= Kokkos::atomic_load(&distance(to))) return;
    if (length >= Kokkos::atomic_fetch_min(&distance(to), length)) return;
    if (Kokkos::atomic_exchange(&entered(to), step) != step)
      next(Kokkos::atomic_fetch_add(&count(0), 1)) = to;
  }
};

/// Sums the edges of workers. The kernels below inherit it and are its workers.
struct LoadSum {
  using value_type = FrontierLoad;
  KOKKOS_FUNCTION void init(FrontierLoad& load) const {
    load.workers = load.edges = load.most = 0;
    load.least = Kokkos::Experimental::finite_max_v<std::int64_t>;
  }
  KOKKOS_FUNCTION void join(FrontierLoad& load, const FrontierLoad& other) const {
    load.workers += other.workers;
    load.edges += other.edges;
    if (other.least < load.least) load.least = other.least;
    if (other.most > load.most) load.most = other.most;
  }
  KOKKOS_FUNCTION void worker(FrontierLoad& load, std::int64_t edges) const {
    ++load.workers;
    load.edges += edges;
    if (edges < load.least) load.least = edges;
    if (edges > load.most) load.most = edges;
  }
};

/// Expands rows: one worker for each active row, which is a node or a part of one.
template <kernel::ExecutionSpace Exec, class Visitor>
struct ExpandRows : LoadSum {
  Visitor visitor;
  GraphArray<const std::int32_t, Exec> active_rows, offsets;
  GraphArray<const std::int64_t, Exec> before;  // by row
  KOKKOS_FUNCTION void operator()(std::int64_t i, FrontierLoad& load) const {
    const std::int32_t row = active_rows(i);
    const std::int64_t start = before(row);
    const std::int32_t last = offsets(row + 1);
    for (std::int32_t edge = offsets(row); edge < last; ++edge) visitor.follow(edge, start);
    worker(load, last - offsets(row));
  }
};

/// Expands coordinates: one worker for each edge, which it follows if the edge is active.
template <kernel::ExecutionSpace Exec, class Visitor>
struct ExpandEdges : LoadSum {
  Visitor visitor;
  GraphArray<const std::int32_t, Exec> from;
  GraphArray<const std::int64_t, Exec> active, before;
  std::int64_t step;
  KOKKOS_FUNCTION void operator()(std::int64_t edge, FrontierLoad& load) const {
    const std::int32_t node = from(edge);
    const bool follows = active(node) == step;
    if (follows) visitor.follow(edge, before(node));
    worker(load, follows ? 1 : 0);
  }
};

/// Expands equal shares of the active edges, as decomposed_share() describes.
template <kernel::ExecutionSpace Exec, class Visitor>
struct ExpandShares : LoadSum {
  Visitor visitor;
  GraphArray<const std::int32_t, Exec> frontier, offsets;
  GraphArray<const std::int64_t, Exec> before, sums;
  std::int64_t nodes, edges, workers;  // active ones
  KOKKOS_FUNCTION void operator()(std::int64_t index, FrontierLoad& load) const {
    const std::int64_t each = edges / workers, extra = edges % workers;
    const std::int64_t first = index * each + (index < extra ? index : extra);
    const std::int64_t last = first + each + (index < extra ? 1 : 0);
    std::int64_t low = 0, high = nodes;  // sums(low) <= first < sums(high)
    while (high - low > 1) {
      const std::int64_t middle = low + (high - low) / 2;
      if (sums(middle) <= first)
        low = middle;
      else
        high = middle;
    }
    for (std::int64_t at = first; at < last; ++low) {
      const std::int32_t node = frontier(low);
      const std::int64_t start = before(node);
      const std::int64_t end = sums(low + 1) < last ? sums(low + 1) : last;
      const std::int64_t shift = offsets(node) - sums(low);
      for (; at < end; ++at) visitor.follow(at + shift, start);
    }
    worker(load, last - first);
  }
};

/// Expands one sub-iteration: the next `piece` edges of every node that still has some. The nodes
/// with a rest are listed for the next sub-iteration.
template <kernel::ExecutionSpace Exec, class Visitor>
struct ExpandPieces : LoadSum {
  Visitor visitor;
  GraphArray<const std::int32_t, Exec> list, offsets;
  GraphArray<const std::int64_t, Exec> before;
  GraphArray<std::int32_t, Exec> rest, count;  // the nodes with a rest, and their number
  std::int64_t done, piece;  // edges of a node before this sub-iteration, and in it
  KOKKOS_FUNCTION void operator()(std::int64_t i, FrontierLoad& load) const {
    const std::int32_t node = list(i);
    const std::int64_t start = before(node), first = offsets(node) + done;
    const std::int64_t end = offsets(node + 1);
    const std::int64_t last = end - first > piece ? first + piece : end;
    for (std::int64_t edge = first; edge < last; ++edge) visitor.follow(edge, start);
    if (last < end) rest(Kokkos::atomic_fetch_add(&count(0), 1)) = node;
    worker(load, last - first);
  }
};

}  // namespace heddle::inline v0::systems::impl
