// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// Kernels 2 and 3 of the benchmark, over the ranks: breadth-first search, top-down, bottom-up or
/// in the direction that costs less (Beamer et al., SC'12), and shortest paths by delta stepping
/// (Meyer and Sanders, 2003). Both are one loop: a breadth-first search has weights and buckets of
/// length 1.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include <Kokkos_Core.hpp>

#include <heddle/collective/all_gather.hpp>
#include <heddle/collective/all_reduce.hpp>
#include <heddle/collective/operations.hpp>
#include <heddle/comm/communicator.hpp>
#include <heddle/device/mirror.hpp>
#include <heddle/systems/graph_load_balance/frontier_balance.hpp>
#include <heddle/systems/graph_load_balance/frontier_expansion.hpp>
#include <heddle/systems/graph_load_balance/graph.hpp>

#include "rank_graph.hpp"
#include "search_kernels.hpp"

namespace graph500 {

enum class Direction : std::uint8_t { top_down, bottom_up, both };

/// What a search did, on this rank.
struct Counts {
  heddle::systems::FrontierRun run;  ///< the steps top-down
  std::int64_t bottom_up = 0;        ///< the steps bottom-up
  std::int64_t bytes = 0;            ///< sent to other ranks for frontiers
};

/// The rows of this rank, and the arrays of its searches.
class Search {
 public:
  Search(const heddle::systems::Graph& graph, const Blocks& blocks,
         const heddle::Communicator& comm, const heddle::systems::FrontierOptions& options)
      : m_comm(comm),
        m_blocks(blocks),
        m_expansion(m_exec, graph, options),
        m_share(blocks.vertices_of(+comm.rank())),
        m_words(blocks.words_of(+comm.rank())),
        m_edges(heddle::all_reduce(graph.edges(), heddle::Sum{}, comm)) {
    const auto vertices = static_cast<std::size_t>(blocks.vertices);
    m_offsets = Numbers("graph500::offsets", vertices + 1);
    const auto offsets = heddle::host_mirror(m_offsets);
    std::copy(graph.offsets.begin(), graph.offsets.end(), offsets.data());
    Kokkos::deep_copy(m_offsets, offsets);
    m_pending = {
        Lengths("graph500::best", vertices),      Numbers("graph500::queued", vertices),
        Numbers("graph500::pending", vertices),   Numbers("graph500::count", 1),
        static_cast<std::int64_t>(m_share.first), static_cast<std::int64_t>(m_share.end())};
    m_frontier = Numbers("graph500::frontier", m_share.count);
    m_later = Numbers("graph500::later", vertices);
    m_count = Numbers("graph500::later_count", 1);
    m_owners = Numbers("graph500::owners", static_cast<std::size_t>(comm.size()));
    m_front = Words("graph500::front", static_cast<std::size_t>(blocks.words()));
    m_found = Words("graph500::found", m_words.count);
    m_asking = Words("graph500::asking", m_words.count);
    for (int q = 0; q < comm.size(); ++q) {
      m_word_counts.push_back(blocks.words_of(q).count);
      m_vertex_counts.push_back(blocks.vertices_of(q).count);
    }
  }

  /// Computes the levels from `root`.
  Counts breadth_first(std::int32_t root, Direction direction) {
    return run(root, {}, 1, direction);
  }

  /// Computes the least sums of weights from `root`. Vertices whose distances lie in the same
  /// `delta` are expanded together.
  Counts shortest_paths(std::int32_t root, std::int64_t delta) {
    return run(root, m_expansion.weights(), delta, Direction::top_down);
  }

  /// Returns what is known of each vertex of the graph, on every rank; `unknown` if no path leads
  /// there.
  [[nodiscard]] std::vector<std::int64_t> gathered() const {
    const Lengths all("graph500::gathered", static_cast<std::size_t>(m_blocks.vertices));
    const auto mine = Kokkos::subview(
        m_pending.best, std::pair<std::size_t, std::size_t>(m_share.first, m_share.end()));
    heddle::all_gather(m_exec, mine, all, m_comm, {.counts = m_vertex_counts});
    const auto mirror = heddle::host_mirror(all);
    Kokkos::deep_copy(mirror, all);
    return {mirror.data(), mirror.data() + mirror.extent(0)};
  }

 private:
  Counts run(std::int32_t root, const Numbers& weights, std::int64_t delta, Direction direction);
  /// Sends the listed vertices of other ranks to their owners, and lists what arrives.
  void exchange(Counts& counts);
  /// Steps bottom-up from the frontier at `distance` as long as goes_on(vertices found) is true.
  /// Lists the vertices of the last step.
  template <class GoesOn>
  void climb(std::int64_t distance, Counts& counts, const GoesOn& goes_on);
  /// Sends this rank's words to all ranks.
  void share_bits(const Words& mine, Counts& counts);
  [[nodiscard]] Outlook look_ahead() const;
  [[nodiscard]] std::int64_t number(const Numbers& count) const {
    std::int32_t value = 0;
    Kokkos::deep_copy(m_exec, value, Kokkos::subview(count, 0));
    m_exec.fence("graph500::number");
    return value;
  }
  [[nodiscard]] Range range(std::int64_t count) const { return {m_exec, 0, count}; }
  [[nodiscard]] std::int64_t first_word() const { return static_cast<std::int64_t>(m_words.first); }
  [[nodiscard]] std::int64_t words() const { return static_cast<std::int64_t>(m_words.count); }

  Exec m_exec;
  const heddle::Communicator& m_comm;
  Blocks m_blocks;
  heddle::systems::FrontierExpansion<Exec> m_expansion;
  heddle::Share m_share, m_words;  // this rank's vertices and words
  std::int64_t m_edges;            // of all ranks, in both directions
  Numbers m_offsets;
  Pending m_pending;
  Numbers m_frontier, m_later, m_count, m_owners;
  Words m_front, m_found, m_asking;  // bits, of all vertices and of this rank's
  std::vector<std::size_t> m_word_counts, m_vertex_counts;  // by rank
};

inline Counts Search::run(std::int32_t root, const Numbers& weights, std::int64_t delta,
                          Direction direction) {
  Counts counts;
  Kokkos::deep_copy(m_exec, m_pending.best, unknown);
  Kokkos::deep_copy(m_exec, m_pending.count, 0);
  if (m_pending.owns(root))
    Kokkos::parallel_for("graph500::root", range(1), AddRoot{m_pending, root});
  std::int64_t unseen = m_edges;  // edges that no step top-down has followed
  bool climbed = false;           // in the step before
  while (true) {
    exchange(counts);
    const Outlook ahead = look_ahead();
    if (ahead.nearest == unknown) return counts;
    const std::int64_t listed = number(m_pending.count);
    Kokkos::deep_copy(m_exec, m_count, 0);
    Kokkos::deep_copy(m_exec, m_found, 0);
    Kokkos::parallel_for("graph500::frontier", range(listed),
                         TakeFrontier{m_pending, m_found, m_later, m_count, first_word(),
                                      (ahead.nearest / delta + 1) * delta});
    std::swap(m_pending.list, m_later);
    std::swap(m_pending.count, m_count);

    // The two constants are those of Beamer et al.
    const bool dense = ahead.edges > unseen / 15 && !climbed;
    climbed = direction == Direction::bottom_up || (direction == Direction::both && dense);
    if (climbed) {
      std::int64_t awake = ahead.vertices;
      climb(ahead.nearest, counts, [&](std::int64_t found) {
        const std::int64_t before = std::exchange(awake, found);
        return direction == Direction::bottom_up
                   ? found > 0
                   : found >= before || found > m_blocks.vertices / 18;
      });
    } else {
      unseen -= ahead.edges;
      ++counts.run.steps;
      std::int64_t active = 0;
      Kokkos::parallel_scan("graph500::list_frontier", range(words()),
                            ListFrontier{m_found, m_frontier, first_word()}, active);
      m_expansion.expand(m_frontier, active, Relax{m_pending, m_expansion.ends(), weights},
                         counts.run);
    }
  }
}

inline Outlook Search::look_ahead() const {
  Outlook ahead;
  Kokkos::parallel_reduce("graph500::look_ahead", range(number(m_pending.count)),
                          LookAhead{m_pending, m_offsets}, ahead);
  if (m_comm.size() == 1) return ahead;
  ahead.nearest = heddle::all_reduce(ahead.nearest, heddle::Min{}, m_comm);
  const Kokkos::View<std::int64_t[2], Kokkos::HostSpace> sums("graph500::sums");
  sums(0) = ahead.edges;
  sums(1) = ahead.vertices;
  heddle::all_reduce(Kokkos::DefaultHostExecutionSpace{}, sums, heddle::Sum{}, m_comm);
  ahead.edges = sums(0);
  ahead.vertices = sums(1);
  return ahead;
}

inline void Search::exchange(Counts& counts) {
  if (m_comm.size() == 1) return;
  const std::int64_t listed = number(m_pending.count);
  Kokkos::deep_copy(m_exec, m_owners, 0);
  Kokkos::parallel_for("graph500::count_messages", range(listed),
                       CountMessages{m_pending, m_blocks, m_owners});
  const auto owners = heddle::host_mirror(m_owners);
  Kokkos::deep_copy(m_exec, owners, m_owners);
  m_exec.fence("graph500::exchange");
  std::vector<std::size_t> words;  // two a message
  std::int32_t sum = 0;
  for (std::size_t q = 0; q < owners.extent(0); ++q) {
    words.push_back(2 * static_cast<std::size_t>(owners(q)));
    sum += std::exchange(owners(q), sum);
  }
  Kokkos::deep_copy(m_exec, m_owners, owners);
  const Lengths send(Kokkos::view_alloc(m_exec, Kokkos::WithoutInitializing, "graph500::send"),
                     2 * static_cast<std::size_t>(sum));
  Kokkos::parallel_for("graph500::write_messages", range(listed),
                       WriteMessages{m_pending, m_blocks, m_owners, send});
  const Lengths received = exchanged(m_exec, send, words, m_comm);
  Kokkos::parallel_for("graph500::read_messages",
                       range(static_cast<std::int64_t>(received.extent(0) / 2)),
                       ReadMessages{m_pending, received});
  counts.bytes += static_cast<std::int64_t>(send.extent(0) * sizeof(std::int64_t));
}

inline void Search::share_bits(const Words& mine, Counts& counts) {
  heddle::all_gather(m_exec, mine, m_front, m_comm, {.counts = m_word_counts});
  counts.bytes += (m_comm.size() - 1) * words() * std::int64_t{sizeof(std::uint64_t)};
}

template <class GoesOn>
void Search::climb(std::int64_t distance, Counts& counts, const GoesOn& goes_on) {
  Kokkos::parallel_for(
      "graph500::find_asking", range(words()),
      FindAsking{m_pending.best, m_offsets, m_asking, first_word(), m_pending.last});
  std::int64_t awake = 0;
  do {
    share_bits(m_found, counts);
    ++counts.bottom_up;
    Kokkos::parallel_reduce("graph500::ask_neighbours", range(words()),
                            AskNeighbours{m_front, m_asking, m_found, m_offsets, m_expansion.ends(),
                                          m_pending.best, first_word(), ++distance},
                            awake);
    if (m_comm.size() > 1) awake = heddle::all_reduce(awake, heddle::Sum{}, m_comm);
  } while (goes_on(awake));
  Kokkos::parallel_for("graph500::list_bits", range(words()),
                       ListBits{m_pending, m_found, first_word()});
}

}  // namespace graph500
