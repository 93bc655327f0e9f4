// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// to_grid(): draws schedules and timelines as text for the terminal, with ranks downwards and time
/// to the right.

#include <optional>
#include <string>

#include <heddle/core/linkage.hpp>
#include <heddle/schedule/timeline.hpp>

namespace heddle::inline v0 {

/// Returns the order of a schedule's compute actions in slots of equal length. Every F, I, W and B
/// takes one slot; other actions take none. Each rank is a line, or each lane if the rank computes
/// in several lanes. Each slot is a cell; `.` means that the rank waits. Fused actions are in
/// brackets. If `columns` is not 0, lines of slots have at most this width, and longer lines are
/// cut into bands.
///
///     1F1B P=2 M=2: 2 ranks, 14 actions
///     rank 0  0F0 0F1 .   0B0 .   0B1
///     rank 1  .   1F0 1B0 1F1 1B1 .
///     6 slots, 4 of 12 cells idle
///
/// @throws contract_error if `columns` is negative.
[[nodiscard]] std::string to_grid(const Schedule& schedule, int columns = 0);

/// Returns a timeline to scale, at most `columns` characters wide, with a line per rank. The
/// letters are F, B, I, W, u (update), + (combine), c (cast), g (group), x (user) and m (a move
/// within the rank);
/// `.` means idle. The microbatch follows the letter, and the stage precedes it if a rank has
/// several stages. If an F, B, I or W is too short for its name, the picture is cut into bands of
/// time, one below the other. If this would take more than ten bands, there is one band with
/// shortened names, and a line tells how many columns are enough. `unit` is the name of the unit of
/// the timeline, which may be empty. Without `unit`, times are in seconds and shown as s, ms or us.
///
///     1F1B P=2 M=2: makespan 9 s, bubble ratio 33.3%
///     rank 0  F0F1..B0--..B1--
///     rank 1  ..F0B0--F1B1--..
///             0 s          9 s
///
/// @throws contract_error if `columns` is less than 1, or if a time is not finite.
[[nodiscard]] std::string to_grid(const Timeline& timeline, int columns = 100,
                                  const std::optional<std::string>& unit = {});

}  // namespace heddle::inline v0

#if HEDDLE_DEFINES_TRACE
#include <heddle/trace/grid.ipp>
#endif
