// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// Definitions of algorithms.hpp: store and forward.

#include <algorithm>
#include <cstdint>
#include <utility>
#include <vector>

#include <heddle/core/linkage.hpp>
#include <heddle/schedule/builder.hpp>
#include <heddle/schedule/collective/impl/algorithms.hpp>
#include <heddle/schedule/collective/impl/binomial_edges.hpp>
#include <heddle/schedule/collective/impl/team.hpp>
#include <heddle/schedule/internal/cut_in_parts.hpp>

namespace heddle::inline v0::schedule::impl {

/// Returns the number of ranks in the subtree of the rank that is `place` after the root.
[[nodiscard]] constexpr std::uint32_t tree_size(std::uint32_t place, std::uint32_t members) {
  return place == 0 ? members : std::min(place & (~place + 1), members - place);
}

/// The location of the blocks of a rank's subtree. The root has them in the complete data, a leaf
/// in its own block, and any other rank in its scratch, which is member P + 1 + rank.
class Kept {
 public:
  /// Constructs the locations. Rank 0's own block is member `own`, the complete data member
  /// `whole`.
  Kept(const Team& team, std::uint32_t own, std::uint32_t whole)
      : m_size(team.size()), m_root(team.root()), m_own(own), m_whole(whole) {}

  /// Calls `copy(above, below)` for the subtree of `child`: once, or twice if its blocks wrap
  /// around the end of the root's data.
  template <class Copy>
  void pass(std::uint32_t parent, std::uint32_t child, std::uint32_t count, Copy&& copy) const {
    const std::uint32_t ahead = parent == m_root ? std::min(count, m_size - child) : count;
    copy(at(parent, child, ahead), at(child, child, ahead));
    if (ahead < count) copy(at(parent, 0, count - ahead), at(child, 0, count - ahead));
  }
  /// Calls `copy(kept, own)` for every rank whose own block lies apart from those of its subtree.
  template <class Copy>
  void for_own(Copy&& copy) const {
    for (std::uint32_t rank = 0; rank < m_size; ++rank)
      if (rank == m_root || !is_leaf(rank)) copy(at(rank, rank, 1), Blocks{m_own + rank, 0, 1});
  }

 private:
  [[nodiscard]] bool is_leaf(std::uint32_t rank) const {
    return tree_size((rank + m_size - m_root) % m_size, m_size) == 1;
  }
  /// The location on rank `keeper` of the blocks of `count` ranks from `rank` on.
  [[nodiscard]] Blocks at(std::uint32_t keeper, std::uint32_t rank, std::uint32_t count) const {
    if (keeper == m_root) return {m_whole, rank, count};
    if (is_leaf(keeper)) return {m_own + keeper, 0, count};
    return {m_size + 1 + keeper, (rank + m_size - keeper) % m_size, count};
  }

  std::uint32_t m_size;
  std::uint32_t m_root;
  std::uint32_t m_own;
  std::uint32_t m_whole;
};

HEDDLE_INLINE void binomial_gather(Team& team) {
  const Kept kept(team, 0, team.size());
  team.next_round();
  kept.for_own([&](const Blocks& there, const Blocks& own) { team.copy(own, there); });
  for_binomial_edges(team, true, [&](auto parent, auto child, auto count) {
    kept.pass(parent, child, count,
              [&](const Blocks& above, const Blocks& below) { team.copy(below, above); });
  });
}

HEDDLE_INLINE void binomial_scatter(Team& team) {
  const Kept kept(team, 1, 0);
  for_binomial_edges(team, false, [&](auto parent, auto child, auto count) {
    kept.pass(parent, child, count,
              [&](const Blocks& above, const Blocks& below) { team.copy(above, below); });
  });
  team.next_round();
  kept.for_own([&](const Blocks& there, const Blocks& own) { team.copy(there, own); });
}

/// Adds the scratch of all ranks, cut like `whole` into blocks of `chunks` parts. Rank 0's own
/// block is member `own`.
inline void add_kept(Builder& builder, std::vector<Use>& members, std::uint32_t own, Use whole,
                     std::uint32_t root, std::uint32_t chunks) {
  const auto ranks = static_cast<std::uint32_t>(members.size() - 1);
  const Buffer all = builder[whole.buffer];
  members.resize(2 * members.size() - 1, whole);  // a placeholder for ranks without scratch
  for (std::uint32_t place = 1; place < ranks; ++place) {
    const std::uint32_t count = tree_size(place, ranks);
    if (count == 1) continue;
    const std::uint32_t rank = (place + root) % ranks;
    Buffer buffer = builder[members[own + rank].buffer];
    buffer.label = builder.label("scratch");
    buffer.transient = true;
    std::vector<Bytes> sizes;
    for (std::uint32_t part = 0; part < count * chunks; ++part) {
      const std::uint32_t block = (rank + part / chunks) % ranks;
      sizes.push_back(part_bytes(all, whole.first + block * chunks + part % chunks, 1));
    }
    heddle::impl::cut_in_parts(buffer, std::move(sizes), heddle::impl::is_bound(all));
    members[ranks + 1 + rank] = update(builder.add_buffer(buffer), 0, buffer.parts);
  }
}

HEDDLE_INLINE void keep_gathered(Builder& builder, std::vector<Use>& members, std::uint32_t root,
                                 std::uint32_t chunks) {
  add_kept(builder, members, 0, members.back(), root, chunks);
}

HEDDLE_INLINE void keep_scattered(Builder& builder, std::vector<Use>& members, std::uint32_t root,
                                  std::uint32_t chunks) {
  add_kept(builder, members, 1, members.front(), root, chunks);
}

}  // namespace heddle::inline v0::schedule::impl
