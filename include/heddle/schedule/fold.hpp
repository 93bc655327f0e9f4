// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// fold(): bounds the storage of a Schedule. Generators write every part once. Folding renames the
/// parts to fewer slots, or gives them places in an arena, and proves that every read still sees
/// the same value.

#include <cstdint>

#include <heddle/core/index.hpp>
#include <heddle/core/linkage.hpp>
#include <heddle/schedule/place_lives.hpp>
#include <heddle/schedule/schedule.hpp>

namespace heddle::inline v0::schedule {

/// Returns `schedule` with one buffer reduced to `slots` parts: part p becomes part p mod `slots`.
/// The buffer must be transient, and its parts must have equal sizes. If an action uses several
/// parts at once, their slots must be consecutive, too. If the buffer has several parts for a
/// microbatch, a slot holds all of them, and each microbatch must be cut alike.
///
/// @throws contract_error if the buffer cannot be folded to `slots` slots.
/// @throws infeasible if a read would see another value. It names the read and the two parts.
[[nodiscard]] Schedule fold(const Schedule& schedule, BufferId buffer, std::uint32_t slots);

/// Returns `schedule` with every transient buffer folded to the fewest slots with which all reads
/// see the same values. This is the memory that one run of the list needs. A buffer at either end
/// of a message between ranks, or one that another rank reads in place, gets `slack` more slots.
/// With them a rank can continue while its earlier results are still in flight or in use.
[[nodiscard]] Schedule fold(const Schedule& schedule, std::uint32_t slack = 1);

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
[[nodiscard]] Schedule fold(const Schedule& schedule, BufferId buffer,
                            PlaceLivesOptions options = {});

}  // namespace heddle::inline v0::schedule

#if HEDDLE_DEFINES_SCHEDULE
#include <heddle/schedule/fold.ipp>
#endif
