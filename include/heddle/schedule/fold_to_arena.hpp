// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// fold_to_arena(): bounds the storage of a buffer whose parts have different sizes. fold() does
/// this for parts of equal size.

#include <heddle/core/linkage.hpp>
#include <heddle/schedule/place_lives.hpp>
#include <heddle/schedule/schedule.hpp>

namespace heddle::inline v0 {

/// Returns `schedule` with one buffer in an arena. The lives of its values in list order, from the
/// action that writes a value to the last one that touches it, are placed by place_lives(). Every
/// use becomes a range of new parts, which are the pieces between the begins and ends of all
/// values. So values that overlap in memory conflict, whatever their sizes are, and every read sees
/// the same value as before.
///
/// The arena has no slack. An action that writes a value waits for the actions before it in the
/// list that touch the same memory, as with fold() and the fewest slots.
/// @throws contract_error if the buffer is persistent, if a part has no bytes, if an action uses
///         several parts of it at once, or if it has scales, records or granules. Also as
///         place_lives() does. The alignment is rounded up to whole elements.
[[nodiscard]] Schedule fold_to_arena(const Schedule& schedule, BufferId buffer,
                                     PlaceLivesOptions options = {});

}  // namespace heddle::inline v0

#if HEDDLE_DEFINES_SCHEDULE
#include <heddle/schedule/fold_to_arena.ipp>
#endif
