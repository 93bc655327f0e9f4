// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// Prints actions as `2F0`, `2SEND_F0`, `3RECV_F0`, and schedules as lists of actions per rank, in
/// the vocabulary of torch.distributed.pipelining.

#include <string>

#include <heddle/core/index.hpp>
#include <heddle/core/linkage.hpp>
#include <heddle/schedule/schedule.hpp>

namespace heddle::inline v0 {

namespace schedule {

/// Returns the text of an action at one of its ends (0: source, 1: destination). Only moves have
/// two ends. A move within one rank is a COPY. If it changes the tier, it is a PREFETCH or EVICT.
[[nodiscard]] std::string action_text(const Schedule& schedule, ActionId id, int end);

/// Returns the text of an action as a whole: `2F0`, or `2SEND_F0 -> 3RECV_F0` for a move between
/// ranks.
[[nodiscard]] std::string action_text(const Schedule& schedule, ActionId id);

}  // namespace schedule

/// Returns one line per rank with its actions in list order, separated by commas. Sends and
/// receives are included.
[[nodiscard]] std::string to_text(const Schedule& schedule);

}  // namespace heddle::inline v0

#if HEDDLE_DEFINES_SCHEDULE
#include <heddle/schedule/action_text.ipp>
#endif
