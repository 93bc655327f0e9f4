// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// to_grid(): schedules and timelines as text, ranks downwards and time to the right, for the
/// terminal.

#include <optional>
#include <string>

#include <heddle/core/linkage.hpp>
#include <heddle/schedule/timeline.hpp>

namespace heddle::inline v0 {

/// The order of a schedule's compute actions, in slots of equal length: every F, I, W and B takes
/// one slot, everything else none. A line per rank (per lane where a rank computes in several), a
/// cell per slot, `.` where the rank has to wait; fused actions stand in brackets. With `columns`,
/// lines of slots are at most that wide: longer ones are cut into bands, one below the other.
///
///     1F1B P=2 M=2: 2 ranks, 14 actions
///     rank 0  0F0 0F1 .   0B0 .   0B1
///     rank 1  .   1F0 1B0 1F1 1B1 .
///     6 slots, 4 of 12 cells idle
///
/// @throws contract_error if `columns` is negative.
[[nodiscard]] std::string to_grid(const Schedule& schedule, int columns = 0);

/// A timeline to scale, at most `columns` characters wide, a line per rank. Letters: F, B, I, W; u
/// update, + combine, c cast, g group, x user, m a move within the rank; `.` idle. Behind the
/// letter is the microbatch; before it the stage if a rank has several. If an F, B, I or W is too
/// short for its name, the picture is cut into bands of time, one below the other. If more than ten
/// bands were needed, there is one, in which names are shortened, and a line that says how many
/// columns are enough. Times are in `unit`, the name of what a second of the timeline stands for,
/// which may be empty; without one they are in seconds, shown as s, ms or us.
///
///     1F1B P=2 M=2: makespan 9 s, bubble ratio 33.3%
///     rank 0  F0F1..B0--..B1--
///     rank 1  ..F0B0--F1B1--..
///             0 s          9 s
///
/// @throws contract_error if `columns` is less than 1, and for a timeline that is not finite.
[[nodiscard]] std::string to_grid(const Timeline& timeline, int columns = 100,
                                  const std::optional<std::string>& unit = {});

}  // namespace heddle::inline v0

#if HEDDLE_HEADER_ONLY
#include <heddle/trace/grid.ipp>
#endif
