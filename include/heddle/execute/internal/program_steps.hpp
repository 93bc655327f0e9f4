// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// The steps of a Program for an Executor: their text in errors, and those that a Mover performs.

#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>

#include <heddle/core/error.hpp>
#include <heddle/core/linkage.hpp>
#include <heddle/core/units.hpp>
#include <heddle/execute/mover.hpp>
#include <heddle/execute/program.hpp>
#include <heddle/schedule/list_place.hpp>

namespace heddle::inline v0::impl {

/// Returns the text of the action at step `at` of a program, or "the end of the step".
[[nodiscard]] std::string step_text(const Program& program, std::size_t at);

/// Returns the text of that place for an error.
[[nodiscard]] std::string step_place(const Program& program, std::size_t at);

/// Returns the complaint about port `number`, which waits for longer than `watchdog` seconds.
/// `ordinal` counts the messages of the port in a step before the one that is awaited.
[[nodiscard]] ErrorInfo stuck(const Program& program, std::size_t at, std::size_t number,
                              std::uint64_t ordinal, Seconds watchdog);

/// Returns the step of the `ordinal`-th message or move of a port, or the size of the program if
/// there is none.
[[nodiscard]] std::size_t step_of_port(const Program& program, std::size_t number,
                                       std::uint64_t ordinal);

/// Returns the place of a rank that waits before step `at` of a program, in its pass number `pass`,
/// counted from 0. `open` is the first step with a message that is not complete, in this pass or,
/// if `previous` is true, in the pass before.
[[nodiscard]] ListPlace list_place(const Program& program, std::size_t at, std::uint64_t pass,
                                   std::size_t open, bool previous);

/// Returns the complaint about the `ordinal`-th move of port `number`, which failed for `reason`.
/// The rank is at step `at` of the program.
[[nodiscard]] ErrorInfo move_failed(const Program& program, std::size_t at, std::size_t number,
                                    std::uint64_t ordinal, const ErrorInfo& reason);

/// Returns the two ends of the move at step `at` of a program.
[[nodiscard]] std::pair<MoveEnd, MoveEnd> move_ends(const Program& program, std::size_t at);

/// Makes every move of a Mover a task of the handler.
void leave_moves_to_handler(Program& program);

/// Checks the numbers that the steps of a program name, before it runs on one of `ranks` ranks.
/// @throws contract_error if one of them names nothing.
void expect_program(const Program& program, int ranks);

/// Checks that the handler touches no buffer that the mover holds.
/// @throws contract_error if it does, for example because a move between tiers shares its queue
///         with other work.
void expect_mover_lanes(const Program& program, const MoverRef& mover);

}  // namespace heddle::inline v0::impl

#if HEDDLE_DEFINES_EXECUTE
#include <heddle/execute/internal/program_steps.ipp>
#endif
