// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// fold(): bounds the storage of a Schedule. Generators write every part once. Folding renames the
/// parts to fewer slots and proves that every read still sees the same value.

#include <cstdint>

#include <heddle/core/index.hpp>
#include <heddle/core/linkage.hpp>
#include <heddle/schedule/schedule.hpp>

namespace heddle::inline v0 {

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
[[nodiscard]] Schedule fold_to_min_slots(const Schedule& schedule, std::uint32_t slack = 1);

}  // namespace heddle::inline v0

#if HEDDLE_DEFINES_SCHEDULE
#include <heddle/schedule/fold.ipp>
#endif
