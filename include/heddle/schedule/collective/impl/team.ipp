// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// Definitions of team.hpp.

#include <algorithm>
#include <cstdint>
#include <numeric>
#include <utility>
#include <vector>

#include <heddle/core/linkage.hpp>
#include <heddle/schedule/collective/impl/rounds.hpp>
#include <heddle/schedule/collective/impl/team.hpp>

namespace heddle::inline v0::schedule::impl {

HEDDLE_INLINE void Team::next_round() { m_rounds->emplace_back(); }

HEDDLE_INLINE void Team::copy(const Blocks& from, const Blocks& to) {
  m_rounds->back().push_back({from, to, false});
}

HEDDLE_INLINE Team Team::of(Rounds& rounds, std::uint32_t members, std::uint32_t blocks,
                            std::uint32_t root) {
  std::vector<std::uint32_t> all(members);
  std::iota(all.begin(), all.end(), 0u);
  std::vector<Block> each;
  for (std::uint32_t b = 0; b < blocks; ++b) each.push_back({b});
  return {rounds, std::move(all), std::move(each), root};
}

HEDDLE_INLINE void Team::copy(std::uint32_t from, std::uint32_t to, std::uint32_t first,
                              std::uint32_t count) {
  hop(from, to, first, count, false);
}

HEDDLE_INLINE void Team::merge(std::uint32_t from, std::uint32_t to, std::uint32_t first,
                               std::uint32_t count) {
  hop(from, to, first, count, true);
}

HEDDLE_INLINE void Team::merge_in_front(std::uint32_t from, std::uint32_t to, std::uint32_t first,
                                        std::uint32_t count) {
  hop(from, to, first, count, true, true);
}

HEDDLE_INLINE Team Team::some(const std::vector<std::uint32_t>& of, std::uint32_t root) const {
  std::vector<std::uint32_t> members;
  for (const std::uint32_t member : of) members.push_back(m_members[member]);
  return {*m_rounds, std::move(members), m_blocks, root};
}

HEDDLE_INLINE Team Team::moved_by(std::uint32_t count) const {
  Team moved = *this;
  for (std::uint32_t& member : moved.m_members) member += count;
  return moved;
}

HEDDLE_INLINE Team Team::only(std::uint32_t block) const {
  return {*m_rounds, m_members, {m_blocks[block]}, m_root};
}

HEDDLE_INLINE Team Team::joined(const std::vector<std::vector<std::uint32_t>>& each) const {
  std::vector<Block> blocks(each.size());
  for (std::size_t i = 0; i < each.size(); ++i)
    for (const std::uint32_t b : each[i])
      blocks[i].insert(blocks[i].end(), m_blocks[b].begin(), m_blocks[b].end());
  return {*m_rounds, m_members, std::move(blocks), m_root};
}

HEDDLE_INLINE Team Team::cut_in(std::uint32_t count) const {
  Block all;
  for (const Block& block : m_blocks) all.insert(all.end(), block.begin(), block.end());
  std::vector<Block> blocks(count);
  for (std::size_t i = 0; i < all.size(); ++i) blocks[i * count / all.size()].push_back(all[i]);
  return {*m_rounds, m_members, std::move(blocks), m_root};
}

HEDDLE_INLINE void Team::hop(std::uint32_t from, std::uint32_t to, std::uint32_t first,
                             std::uint32_t count, bool merges, bool in_front) {
  Block all;
  for (std::uint32_t b = first; b < first + count; ++b) {
    const Block& some = m_blocks[b % blocks()];
    all.insert(all.end(), some.begin(), some.end());
  }
  std::sort(all.begin(), all.end());
  for (std::size_t i = 0, end = 0; i < all.size(); i = end) {
    for (end = i + 1; end < all.size() && all[end] == all[end - 1] + 1;) ++end;
    const auto run = static_cast<std::uint32_t>(end - i);
    m_rounds->back().push_back(
        {{m_members[from], all[i], run}, {m_members[to], all[i], run}, merges, in_front});
  }
}

}  // namespace heddle::inline v0::schedule::impl
