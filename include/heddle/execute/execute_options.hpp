// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// ExecuteOptions and Stamp: what an Executor is told, and the times that it records.

#include <functional>
#include <string_view>

#include <heddle/core/linkage.hpp>
#include <heddle/core/units.hpp>
#include <heddle/execute/clock.hpp>
#include <heddle/execute/idle.hpp>
#include <heddle/execute/mover.hpp>

namespace heddle::inline v0 {

/// Options of an Executor: how it waits, and what it records.
struct ExecuteOptions {
  Idle idle = Idle::yield;  ///< how far a waiting rank gives up its core
  bool record = false;      ///< stamps every action, at about 10 ns each
  Seconds watchdog = 120;   ///< the longest wait for a message, in seconds; 0: no limit
  /// Receives a line for each abort, and the lines that a model reports when its Runner is made,
  /// such as the path of messages and the BLAS library (see Stages). It may be empty.
  std::function<void(std::string_view)> log = {};
  /// Performs moves between tiers while the rank computes, see Mover. These are the moves in local
  /// queues that have nothing but moves within the rank, at least one of them between tiers. If
  /// there is no mover, such a move is a task of the handler, at its place in the list.
  MoverRef mover = {};
  /// After a hang, the longest wait for the other ranks to tell how far they have come, in seconds.
  Seconds grace = 1;
};

namespace impl {

/// Checks ExecuteOptions on behalf of the function `where`.
/// @throws contract_error if `idle` is none of the enumerators, if the watchdog is below 0 or NaN,
///         or if `grace` is below 0 or not finite.
void expect_valid(const ExecuteOptions& options, const char* where);

}  // namespace impl

/// The time in which a step of the Program took place. The `end` of a send, a receive or a move of
/// a Mover is the time at which its completion was seen, at the latest before the first action that
/// needed it.
struct Stamp {
  Clock::Ticks start = 0;  ///< before the action
  Clock::Ticks end = 0;    ///< after it
};

}  // namespace heddle::inline v0

#if HEDDLE_DEFINES_EXECUTE
#include <heddle/execute/execute_options.ipp>
#endif
