// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// Team: the members that perform an algorithm, and the blocks of their data. All algorithms use
/// it, so that each of them runs on all ranks, in a group of ranks, or across groups.

#include <cstdint>
#include <utility>
#include <vector>

#include <heddle/core/linkage.hpp>
#include <heddle/schedule/collective/impl/rounds.hpp>

namespace heddle::inline v0::schedule::impl {

/// The members 0, 1, ..., size() - 1 of an algorithm, with blocks 0, 1, ..., blocks() - 1. Each
/// member maps to a member of the collective, and each block to some of its blocks.
class Team {
 public:
  /// Blocks of the collective that are one block of the team, in the order of their owners.
  using Block = std::vector<std::uint32_t>;

  /// Constructs a team of these `members` of the collective. A rooted collective has the root at
  /// member `root` of the team.
  Team(Rounds& rounds, std::vector<std::uint32_t> members, std::vector<Block> blocks,
       std::uint32_t root = 0)
      : m_rounds(&rounds),
        m_members(std::move(members)),
        m_blocks(std::move(blocks)),
        m_root(root) {}

  /// Returns the team of members 0 to `members - 1` of a collective, with `blocks` blocks.
  [[nodiscard]] static Team of(Rounds& rounds, std::uint32_t members, std::uint32_t blocks,
                               std::uint32_t root);

  /// Number of members.
  [[nodiscard]] std::uint32_t size() const { return static_cast<std::uint32_t>(m_members.size()); }
  /// Number of blocks.
  [[nodiscard]] std::uint32_t blocks() const { return static_cast<std::uint32_t>(m_blocks.size()); }
  /// The member that is the source or the destination of a rooted collective.
  [[nodiscard]] std::uint32_t root() const { return m_root; }

  /// Begins a round. Its hops may need the data of earlier rounds.
  void next_round();
  /// Copies blocks [first, first + count), taken modulo blocks(), of `from` to those of `to`.
  void copy(std::uint32_t from, std::uint32_t to, std::uint32_t first, std::uint32_t count);
  /// Merges blocks [first, first + count), taken modulo blocks(), of `from` into those of `to`:
  /// to = to + from.
  void merge(std::uint32_t from, std::uint32_t to, std::uint32_t first, std::uint32_t count);
  /// Merges as merge(), but in front of the blocks of `to`: to = from + to.
  void merge_in_front(std::uint32_t from, std::uint32_t to, std::uint32_t first,
                      std::uint32_t count);
  /// Copies blocks between any members of the collective, for collectives that are not in place.
  void copy(const Blocks& from, const Blocks& to);

  /// Returns the team of some members, in this order. Its root is the `root`-th of them.
  [[nodiscard]] Team some(const std::vector<std::uint32_t>& of, std::uint32_t root) const;
  /// Returns the same team on the members of the collective that are `count` further on.
  [[nodiscard]] Team moved_by(std::uint32_t count) const;
  /// Returns the same team with only one of its blocks.
  [[nodiscard]] Team only(std::uint32_t block) const;
  /// Returns the same team with joined blocks: block i consists of the blocks each[i].
  [[nodiscard]] Team joined(const std::vector<std::vector<std::uint32_t>>& each) const;
  /// Returns the same team with its data as `count` blocks: adjacent blocks joined, or blocks
  /// divided.
  [[nodiscard]] Team cut_in(std::uint32_t count) const;

 private:
  /// Appends one message for each run of adjacent blocks.
  void hop(std::uint32_t from, std::uint32_t to, std::uint32_t first, std::uint32_t count,
           bool merges, bool in_front = false);

  Rounds* m_rounds;
  std::vector<std::uint32_t> m_members;
  std::vector<Block> m_blocks;
  std::uint32_t m_root;
};

}  // namespace heddle::inline v0::schedule::impl

#if HEDDLE_DEFINES_SCHEDULE_COLLECTIVE
#include <heddle/schedule/collective/impl/team.ipp>
#endif
