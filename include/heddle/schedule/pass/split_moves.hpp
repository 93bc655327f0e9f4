// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// split_moves(): sends messages in pieces side by side, each in its own lane, or as a whole in
/// another lane. A Schedule chooses its paths this way if the Machine maps lanes to different
/// paths.

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <vector>

#include <heddle/core/contract.hpp>
#include <heddle/core/linkage.hpp>
#include <heddle/schedule/schedule.hpp>

namespace heddle::inline v0::schedule {

/// A piece of a message: the units [first, first + count) of the message, and a lane.
struct MovePiece {
  Lane lane = {};           ///< the lane that carries the piece
  std::uint32_t first = 0;  ///< the first unit
  std::uint32_t count = 1;  ///< number of units

  friend bool operator==(const MovePiece&, const MovePiece&) = default;
};

namespace impl {

/// Returns the result of split_moves() for the pieces of each action.
[[nodiscard]] Schedule split_moves_at(const Schedule& schedule, std::uint32_t units,
                                      const std::vector<std::vector<MovePiece>>& pieces);

}  // namespace impl

/// Returns `schedule` with each move divided into the pieces that `pieces(id)` returns, in their
/// order. A move without pieces stays as it is. Every part of a message is cut into `units` parts,
/// as equal as whole elements or records allow, and every unit belongs to one piece. The buffers of
/// these moves are cut in the same way. All other actions use the same ranges as before.
///
/// @throws contract_error if `units` is 0, if the pieces of a move are not consecutive from its
///         first unit to its last, or if the parts of a buffer begin with scales.
template <std::invocable<ActionId> Pieces>
[[nodiscard]] Schedule split_moves(const Schedule& schedule, std::uint32_t units, Pieces&& pieces) {
  expects(units >= 1, [] {
    return ErrorInfo{"heddle::schedule::split_moves", "a message must have at least one unit", {}};
  });
  std::vector<std::vector<MovePiece>> of(schedule.size());
  for (std::size_t i = 0; i < schedule.size(); ++i) {
    const ActionId id{i};
    if (schedule[id].kind != Kind::move) continue;
    for (const MovePiece& piece : pieces(id)) of[i].push_back(piece);
  }
  return impl::split_moves_at(schedule, units, of);
}

}  // namespace heddle::inline v0::schedule

#if HEDDLE_DEFINES_SCHEDULE_PASS
#include <heddle/schedule/pass/split_moves.ipp>
#endif
