// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// Team: those that perform an algorithm, and the blocks that it is about. All algorithms are
/// written on it, so that each runs on all ranks, in a group of them, or across groups.

#include <cstdint>
#include <utility>
#include <vector>

#include <heddle/core/linkage.hpp>
#include <heddle/schedule/collective/rounds.hpp>

namespace heddle::inline v0::schedule {

/// Members 0, 1, ..., size() - 1 of an algorithm with blocks 0, 1, ..., blocks() - 1. Each stands
/// for a member of the collective, and for some of its blocks.
class Team {
 public:
  /// Blocks of the collective that an algorithm sees as one, in the order of their owners.
  using Block = std::vector<std::uint32_t>;

  /// Those that are `members` of the collective. Where there is a root, it is member `root` of the
  /// team.
  Team(Rounds& rounds, std::vector<std::uint32_t> members, std::vector<Block> blocks,
       std::uint32_t root = 0)
      : m_rounds(&rounds),
        m_members(std::move(members)),
        m_blocks(std::move(blocks)),
        m_root(root) {}

  /// The members 0 to `members - 1` of a collective, with `blocks` blocks.
  [[nodiscard]] static Team of(Rounds& rounds, std::uint32_t members, std::uint32_t blocks,
                               std::uint32_t root);

  /// Number of members.
  [[nodiscard]] std::uint32_t size() const { return static_cast<std::uint32_t>(m_members.size()); }
  /// Number of blocks.
  [[nodiscard]] std::uint32_t blocks() const { return static_cast<std::uint32_t>(m_blocks.size()); }
  /// The member that has everything before, or after.
  [[nodiscard]] std::uint32_t root() const { return m_root; }

  /// Hops from now on may need what those so far bring.
  void next_round() { m_rounds->emplace_back(); }
  /// Blocks [first, first + count), counted around, of `to` become those of `from`.
  void copy(std::uint32_t from, std::uint32_t to, std::uint32_t first, std::uint32_t count);
  /// Blocks [first, first + count), counted around, of `from` are merged into those of `to`: to =
  /// to + from.
  void merge(std::uint32_t from, std::uint32_t to, std::uint32_t first, std::uint32_t count);
  /// Likewise, in front of those of `to`: to = from + to.
  void merge_in_front(std::uint32_t from, std::uint32_t to, std::uint32_t first,
                      std::uint32_t count);
  /// Blocks become others, of any member of the collective: for what is not in place.
  void copy(const Blocks& from, const Blocks& to) { m_rounds->back().push_back({from, to, false}); }

  /// Some of its members, in this order: a team whose root is the `root`-th of them.
  [[nodiscard]] Team some(const std::vector<std::uint32_t>& of, std::uint32_t root) const;
  /// The same team of those that are `count` members of the collective further on.
  [[nodiscard]] Team moved_by(std::uint32_t count) const;
  /// The same team with one of its blocks only.
  [[nodiscard]] Team only(std::uint32_t block) const;
  /// The same team with blocks that are made of these of its blocks each.
  [[nodiscard]] Team joined(const std::vector<std::vector<std::uint32_t>>& each) const;
  /// The same team with its blocks seen as `count` blocks: neighbours joined, or each divided.
  [[nodiscard]] Team cut_in(std::uint32_t count) const;

 private:
  /// One message for each run of adjacent blocks.
  void hop(std::uint32_t from, std::uint32_t to, std::uint32_t first, std::uint32_t count,
           bool merges, bool in_front = false);

  Rounds* m_rounds;
  std::vector<std::uint32_t> m_members;
  std::vector<Block> m_blocks;
  std::uint32_t m_root;
};

}  // namespace heddle::inline v0::schedule

#if HEDDLE_HEADER_ONLY
#include <heddle/schedule/collective/team.ipp>
#endif
