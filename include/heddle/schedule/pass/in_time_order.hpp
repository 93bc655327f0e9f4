// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// in_time_order(): sorts the actions of a list by their expected start. For schedules with ranks
/// that walk the list one action after another: such a rank would wait for a late action while an
/// earlier one is ready.

#include <heddle/core/linkage.hpp>
#include <heddle/schedule/schedule.hpp>
#include <heddle/schedule/timeline.hpp>

namespace heddle::inline v0::schedule {

/// Returns the Schedule of `timeline` with its list sorted by the start times of the actions. The
/// order within each queue stays, and every action still has the same dependencies. Every value is
/// therefore computed as before, sums are formed in the same order, and the simulated times are the
/// same.
///
/// A generator lists one round after another. A rank that walks such a list sends nothing of the
/// second round while it waits for the last message of the first round. In the order of time it
/// sends earlier.
[[nodiscard]] Schedule in_time_order(const Timeline& timeline);

}  // namespace heddle::inline v0::schedule

#if HEDDLE_DEFINES_SCHEDULE_PASS
#include <heddle/schedule/pass/in_time_order.ipp>
#endif
