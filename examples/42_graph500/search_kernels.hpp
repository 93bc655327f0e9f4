// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// The kernels of a search. What is known of a vertex is one number: the distance in the upper 32
/// bits, the parent in the lower ones. The least number wins, so that of several parents at the
/// same distance it is the one with the least number, in every run.

#include <cstdint>

#include <Kokkos_Core.hpp>

#include "rank_graph.hpp"
#include "space.hpp"

namespace graph500 {

using Exec = examples::Space;
using Range = Kokkos::RangePolicy<Exec, Kokkos::IndexType<std::int64_t>>;
using Numbers = Kokkos::View<std::int32_t*, Exec::memory_space>;
using Lengths = Kokkos::View<std::int64_t*, Exec::memory_space>;
using Words = Kokkos::View<std::uint64_t*, Exec::memory_space>;

inline constexpr std::int64_t unknown = INT64_MAX;

/// The vertices that a step has lowered and that no step has expanded since.
struct Pending {
  Lengths best;    // by vertex: what is known of it; of other ranks' vertices, what was sent
  Numbers queued;  // by vertex: 1 if it is listed
  Numbers list, count;
  std::int64_t first, last;  // this rank's vertices

  KOKKOS_FUNCTION bool owns(std::int32_t vertex) const { return vertex >= first && vertex < last; }
  KOKKOS_FUNCTION void add(std::int32_t vertex) const {
    if (Kokkos::atomic_exchange(&queued(vertex), 1) == 0)
      list(Kokkos::atomic_fetch_add(&count(0), 1)) = vertex;
  }
  KOKKOS_FUNCTION void lower(std::int32_t vertex, std::int64_t value) const {
    // Values only fall, so most edges need no more than a load.
    if (value >= Kokkos::atomic_load(&best(vertex))) return;
    const std::int64_t before = Kokkos::atomic_fetch_min(&best(vertex), value);
    if (value >= before) return;
    // A vertex that has only found another parent sends nothing else along its edges.
    if (value >> 32 == before >> 32 && owns(vertex)) return;
    add(vertex);
  }
};

/// Follows edges; see heddle::systems::EdgeVisitor.
struct Relax {
  Pending pending;
  Numbers ends, weights;  // by edge; no weights: each is 1
  KOKKOS_FUNCTION std::int64_t value(std::int32_t vertex) const {
    return (pending.best(vertex) >> 32 << 32) | vertex;
  }
  KOKKOS_FUNCTION void follow(std::int64_t edge, std::int64_t value) const {
    const std::int64_t weight = weights.extent(0) > 0 ? weights(edge) : 1;
    pending.lower(ends(edge), value + (weight << 32));
  }
};

/// Adds the root to an empty search.
struct AddRoot {
  Pending pending;
  std::int32_t root;
  KOKKOS_FUNCTION void operator()(std::int64_t) const { pending.lower(root, root); }
};

/// Counts the listed vertices of other ranks, by owner.
struct CountMessages {
  Pending pending;
  Blocks blocks;
  Numbers counts;
  KOKKOS_FUNCTION void operator()(std::int64_t i) const {
    const std::int32_t vertex = pending.list(i);
    if (!pending.owns(vertex)) Kokkos::atomic_fetch_add(&counts(blocks.owner(vertex)), 1);
  }
};

/// Writes a message, which is a vertex and its value, for each listed vertex of another rank.
struct WriteMessages {
  Pending pending;
  Blocks blocks;
  Numbers next;  // by owner: its next message
  Lengths messages;
  KOKKOS_FUNCTION void operator()(std::int64_t i) const {
    const std::int32_t vertex = pending.list(i);
    if (pending.owns(vertex)) return;
    const std::int64_t at = Kokkos::atomic_fetch_add(&next(blocks.owner(vertex)), 1);
    messages(2 * at) = vertex;
    messages(2 * at + 1) = pending.best(vertex);
    pending.queued(vertex) = 0;
  }
};

/// Reads the messages of other ranks.
struct ReadMessages {
  Pending pending;
  Lengths messages;
  KOKKOS_FUNCTION void operator()(std::int64_t i) const {
    pending.lower(static_cast<std::int32_t>(messages(2 * i)), messages(2 * i + 1));
  }
};

/// What a rank has to do.
struct Outlook {
  std::int64_t nearest = unknown;  ///< the least distance of a listed vertex
  std::int64_t edges = 0;          ///< the edges of the listed vertices
  std::int64_t vertices = 0;       ///< the listed vertices
};

/// Sums what the listed vertices of this rank are.
struct LookAhead {
  using value_type = Outlook;
  Pending pending;
  Numbers offsets;
  KOKKOS_FUNCTION void init(Outlook& sum) const {
    sum.nearest = unknown;
    sum.edges = sum.vertices = 0;
  }
  KOKKOS_FUNCTION void join(Outlook& sum, const Outlook& other) const {
    if (other.nearest < sum.nearest) sum.nearest = other.nearest;
    sum.edges += other.edges;
    sum.vertices += other.vertices;
  }
  KOKKOS_FUNCTION void operator()(std::int64_t i, Outlook& sum) const {
    const std::int32_t vertex = pending.list(i);
    if (!pending.owns(vertex)) return;
    const std::int64_t distance = pending.best(vertex) >> 32;
    if (distance < sum.nearest) sum.nearest = distance;
    sum.edges += offsets(vertex + 1) - offsets(vertex);
    ++sum.vertices;
  }
};

/// Divides the listed vertices of this rank: those below the limit form the frontier.
struct TakeFrontier {
  Pending pending;
  Words frontier;  // bits of this rank's vertices
  Numbers later, count;
  std::int64_t first_word, limit;
  KOKKOS_FUNCTION void operator()(std::int64_t i) const {
    const std::int32_t vertex = pending.list(i);
    if (!pending.owns(vertex)) return;
    if (pending.best(vertex) >> 32 < limit) {
      pending.queued(vertex) = 0;
      Kokkos::atomic_fetch_or(&frontier(vertex / 64 - first_word), std::uint64_t{1} << vertex % 64);
    } else {
      later(Kokkos::atomic_fetch_add(&count(0), 1)) = vertex;
    }
  }
};

/// Lists the frontier in ascending order. Most vertices then find their parent of the least number
/// first, and rows are read in the order of memory.
struct ListFrontier {
  Words frontier;
  Numbers list;
  std::int64_t first_word;
  KOKKOS_FUNCTION void operator()(std::int64_t word, std::int64_t& at, bool last) const {
    for (std::uint64_t rest = frontier(word); rest != 0; rest &= rest - 1, ++at)
      if (last)
        list(at) = static_cast<std::int32_t>(64 * (first_word + word) + Kokkos::countr_zero(rest));
  }
};

/// Finds the vertices that a bottom-up search still asks: they are unknown and have edges.
struct FindAsking {
  Lengths best;
  Numbers offsets;
  Words asking;
  std::int64_t first_word, last;
  KOKKOS_FUNCTION void operator()(std::int64_t word) const {
    std::uint64_t bits = 0;
    const std::int64_t begin = 64 * (first_word + word);
    const std::int64_t end = begin + 64 < last ? begin + 64 : last;
    for (std::int64_t v = begin; v < end; ++v)
      if (best(v) == unknown && offsets(v + 1) > offsets(v)) bits |= std::uint64_t{1} << v % 64;
    asking(word) = bits;
  }
};

/// One step bottom-up: each vertex that asks takes its first neighbour in the frontier as parent.
/// Rows ascend, so this is the parent that a step top-down finds.
struct AskNeighbours {
  Words frontier, asking, found;  // of all vertices; of this rank's
  Numbers offsets, ends;
  Lengths best;
  std::int64_t first_word, distance;
  KOKKOS_FUNCTION void operator()(std::int64_t word, std::int64_t& awake) const {
    std::uint64_t now = 0;
    for (std::uint64_t rest = asking(word); rest != 0; rest &= rest - 1) {
      const std::int64_t v = 64 * (first_word + word) + Kokkos::countr_zero(rest);
      const std::int32_t last = offsets(v + 1);
      for (std::int32_t edge = offsets(v); edge < last; ++edge) {
        const std::int32_t parent = ends(edge);
        if ((frontier(parent / 64) >> parent % 64 & 1) == 0) continue;
        best(v) = distance << 32 | parent;
        now |= rest & (~rest + 1);
        ++awake;
        break;
      }
    }
    found(word) = now;
    asking(word) &= ~now;
  }
};

/// Lists the vertices of the bits.
struct ListBits {
  Pending pending;
  Words bits;
  std::int64_t first_word;
  KOKKOS_FUNCTION void operator()(std::int64_t word) const {
    for (std::uint64_t rest = bits(word); rest != 0; rest &= rest - 1)
      pending.add(static_cast<std::int32_t>(64 * (first_word + word) + Kokkos::countr_zero(rest)));
  }
};

}  // namespace graph500
