// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// Definitions of algorithms.hpp: recursive.

#include <bit>
#include <cstdint>

#include <heddle/core/linkage.hpp>
#include <heddle/schedule/collective/impl/algorithms.hpp>
#include <heddle/schedule/collective/impl/team.hpp>

namespace heddle::inline v0::schedule::impl {

/// A team as a hypercube. The number of corners is the largest power of two that the team has
/// members for. Each surplus member is the second of one of the first pairs of members. It sends
/// its data to its neighbour, a corner, and receives the result from it. Blocks are numbered as
/// members, so the blocks of corner v begin at first(v).
class Cube {
 public:
  explicit Cube(Team& team)
      : m_team(team), m_corners(std::bit_floor(team.size())), m_surplus(team.size() - m_corners) {}

  [[nodiscard]] std::uint32_t corners() const { return m_corners; }
  [[nodiscard]] std::uint32_t first(std::uint32_t corner) const {
    return corner < m_surplus ? 2 * corner : corner + m_surplus;
  }

  /// Calls `pass(corner, surplus)` for each pair, in a round of its own.
  template <class Pass>
  void fold(Pass&& pass) {
    if (m_surplus == 0) return;
    m_team.next_round();
    for (std::uint32_t v = 0; v < m_surplus; ++v) pass(2 * v, 2 * v + 1);
  }

  /// Makes a round in which all corners exchange with their partners at `distance`. Calls
  /// `pass(from, to, begin, end)`, where [begin, end) are the blocks of the corners that differ
  /// from `of` only in bits below `distance`. `of` is the receiver when halving, the sender when
  /// doubling.
  template <class Pass>
  void exchange(std::uint32_t distance, bool halving, Pass&& pass) {
    m_team.next_round();
    for (std::uint32_t v = 0; v < m_corners; ++v) {
      const std::uint32_t partner = v ^ distance;
      const std::uint32_t of = (halving ? partner : v) & ~(distance - 1);
      pass(first(v), first(partner), first(of), first(of + distance));
    }
  }

 private:
  Team& m_team;
  std::uint32_t m_corners;
  std::uint32_t m_surplus;
};

/// Appends the reduce-scatter among the corners of a cube.
inline void halve(Team& team, Cube& cube) {
  cube.fold([&](auto corner, auto surplus) { team.merge(surplus, corner, 0, team.blocks()); });
  for (std::uint32_t distance = cube.corners() / 2; distance > 0; distance /= 2)
    cube.exchange(distance, true, [&](auto from, auto to, auto begin, auto end) {
      team.merge(from, to, begin, end - begin);
    });
}
/// Appends the all-gather among the corners of a cube.
inline void redouble(Team& team, Cube& cube) {
  for (std::uint32_t distance = 1; distance < cube.corners(); distance *= 2)
    cube.exchange(distance, false, [&](auto from, auto to, auto begin, auto end) {
      team.copy(from, to, begin, end - begin);
    });
}

HEDDLE_INLINE void recursive_doubling_all_reduce(Team& team) {
  Cube cube(team);
  cube.fold([&](auto corner, auto surplus) { team.merge(surplus, corner, 0, team.blocks()); });
  for (std::uint32_t distance = 1; distance < cube.corners(); distance *= 2)
    cube.exchange(distance, false, [&](auto from, auto to, auto, auto) {
      from < to ? team.merge_in_front(from, to, 0, team.blocks())
                : team.merge(from, to, 0, team.blocks());
    });
  cube.fold([&](auto corner, auto surplus) { team.copy(corner, surplus, 0, team.blocks()); });
}

HEDDLE_INLINE void recursive_doubling_all_gather(Team& team) {
  Cube cube(team);
  cube.fold([&](auto corner, auto surplus) { team.copy(surplus, corner, surplus, 1); });
  redouble(team, cube);
  cube.fold([&](auto corner, auto surplus) {
    team.copy(corner, surplus, surplus + 1, team.blocks() - 1);
  });
}

HEDDLE_INLINE void recursive_halving_reduce_scatter(Team& team) {
  Cube cube(team);
  halve(team, cube);
  cube.fold([&](auto corner, auto surplus) { team.copy(corner, surplus, surplus, 1); });
}

HEDDLE_INLINE void recursive_halving_all_reduce(Team& team) {
  Cube cube(team);
  halve(team, cube);
  redouble(team, cube);
  cube.fold([&](auto corner, auto surplus) { team.copy(corner, surplus, 0, team.blocks()); });
}

}  // namespace heddle::inline v0::schedule::impl
