// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// slice(): makes the Program of one rank from a Schedule. This is the only lowering.

#include <cstddef>
#include <functional>

#include <heddle/core/internal/function_ref.hpp>
#include <heddle/core/linkage.hpp>
#include <heddle/execute/program.hpp>
#include <heddle/schedule/schedule.hpp>

namespace heddle::inline v0 {

/// Returns the part of `schedule` that takes place on `rank`, with memory bound. `bind(id, buffer)`
/// returns where a buffer begins. It is called once for each buffer of this rank, and for each
/// buffer of another rank that the actions of this rank touch. Memory may be null if nothing
/// dereferences it (weights that a handler holds itself, or buffers of no bytes).
///
/// Persistent memory of another rank is not touched before that rank has begun the step, because
/// until then it may still be filled. `progress(rank)` returns the counter of a rank whose memory
/// this one shares. It is not called if the schedule has no such ranks.
///
/// @throws contract_error if the rank is outside the schedule, if the two ranges of a move differ
///         in size, or if ranks share memory but there is no `progress`.
[[nodiscard]] Program slice(const Schedule& schedule, Rank rank,
                            impl::FunctionRef<std::byte*(BufferId, const Buffer&)> bind,
                            const std::function<impl::ProgressCounter*(Rank)>& progress = {});

}  // namespace heddle::inline v0

#if HEDDLE_DEFINES_EXECUTE
#include <heddle/execute/slice.ipp>
#endif
