// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// fit_memory(): compares the buffers that a Runner allocates with the memories of a Machine,
/// before it allocates them.

#include <heddle/core/linkage.hpp>
#include <heddle/schedule/schedule.hpp>

namespace heddle::inline v0 {

class Machine;

namespace impl {

/// Returns `schedule` with an arena in place of every transient buffer whose parts have different
/// sizes, if the arena is smaller; see schedule::fold(). Buffers of which an action uses several
/// parts stay as they are.
[[nodiscard]] Schedule fold_uneven(Schedule schedule);

/// Checks that the buffers of `schedule` fit in the memories of `machine`. First check_capacity()
/// looks at its simulated Timeline, in which a forward takes 1, a backward 2, and the rest nothing.
/// Then the sizes of the buffers are added, because a Runner allocates all of them at once.
/// Devices without memories and capacities of 0 are unknown, and never exceeded.
/// @throws infeasible if a tier is too small. The error names the rank, the tier and the bytes that
///         lack, and the action if the values that live at once are too many.
/// @throws contract_error as check_capacity() does.
void expect_fits(const Schedule& schedule, const Machine& machine);

}  // namespace impl

}  // namespace heddle::inline v0

#if HEDDLE_DEFINES_EXECUTE
#include <heddle/execute/fit_memory.ipp>
#endif
