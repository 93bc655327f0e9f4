// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// drop_unread(): a Schedule without the moves whose value nobody reads.

#include <heddle/core/linkage.hpp>
#include <heddle/schedule/schedule.hpp>

namespace heddle::inline v0::schedule {

/// `schedule` without the moves whose value no later action reads. If only the dropped moves read
/// the value of another move, that one is dropped too, and so on. If some parts of a message are
/// read and others are not, the message becomes the shortest range that has all parts that are
/// read; its two ranges must be cut alike for that. All other actions stay.
///
/// The value of a persistent buffer counts as read at the end of the list, because the next step
/// or the caller may read it. That of a transient buffer does not. Cost: one sweep from the end.
[[nodiscard]] Schedule drop_unread(const Schedule& schedule);

}  // namespace heddle::inline v0::schedule

#if HEDDLE_DEFINES_SCHEDULE_PASS
#include <heddle/schedule/pass/drop_unread.ipp>
#endif
