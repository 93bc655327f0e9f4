// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// Definitions of algorithms.hpp: double tree.

#include <bit>
#include <cstdint>

#include <heddle/core/linkage.hpp>
#include <heddle/schedule/collective/impl/algorithms.hpp>
#include <heddle/schedule/collective/impl/team.hpp>

namespace heddle::inline v0::schedule::impl {

/// One of two binary trees over P members. No member has children in both trees. In the first tree
/// the height of a member is the number of trailing zeros of i = member + 1. The second tree is the
/// first one mirrored, or shifted by one if P is odd. Sanders, Speck and Traeff, Parallel Computing
/// 35 (2009).
struct BinaryTree {
  std::uint32_t members;
  bool second;

  [[nodiscard]] std::uint32_t height_of(std::uint32_t place) const {
    return static_cast<std::uint32_t>(std::countr_zero(place + 1));
  }
  [[nodiscard]] std::uint32_t root_place() const { return std::bit_floor(members) - 1; }
  [[nodiscard]] std::uint32_t parent_place(std::uint32_t place) const {
    std::uint32_t i = place + 1;
    do {  // skips ancestors that only a larger tree has
      const std::uint32_t height = static_cast<std::uint32_t>(std::countr_zero(i));
      i = (i >> (height + 1) & 1) != 0 ? i - (1u << height) : i + (1u << height);
    } while (i > members);
    return i - 1;
  }
  [[nodiscard]] std::uint32_t at(std::uint32_t place) const {
    if (!second) return place;
    return members % 2 == 0 ? members - 1 - place : (place + members - 1) % members;
  }
};

/// Calls `pass(tree, child, parent)` for every edge of both trees, with a round for each height of
/// the children.
template <class Pass>
void for_double_tree_edges(Team& team, std::uint32_t members, bool upwards, Pass&& pass) {
  const auto rounds = static_cast<std::uint32_t>(std::bit_width(members)) - 1;
  for (std::uint32_t i = 0; i <= rounds; ++i) {
    const std::uint32_t height = upwards ? i : rounds - i;
    team.next_round();
    for (const std::uint32_t tree : {0u, 1u}) {
      const BinaryTree binary{members, tree == 1};
      for (std::uint32_t place = 0; place < members; ++place)
        if (binary.height_of(place) == height && place != binary.root_place())
          pass(tree, binary.at(place), binary.at(binary.parent_place(place)));
    }
  }
}

HEDDLE_INLINE void double_tree_broadcast(Team& team) {
  const std::uint32_t p = team.size();
  if (p == 1) return;
  const auto member = [&](std::uint32_t other) { return (team.root() + 1 + other) % p; };
  team.next_round();
  for (const std::uint32_t tree : {0u, 1u}) {
    const BinaryTree binary{p - 1, tree == 1};
    team.copy(team.root(), member(binary.at(binary.root_place())), tree, 1);
  }
  for_double_tree_edges(team, p - 1, false, [&](auto tree, auto child, auto parent) {
    team.copy(member(parent), member(child), tree, 1);
  });
}

HEDDLE_INLINE void double_tree_all_reduce(Team& team) {
  for_double_tree_edges(team, team.size(), true, [&](auto tree, auto child, auto parent) {
    team.merge(child, parent, tree, 1);
  });
  for_double_tree_edges(team, team.size(), false, [&](auto tree, auto child, auto parent) {
    team.copy(parent, child, tree, 1);
  });
}

}  // namespace heddle::inline v0::schedule::impl
