// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// Computes a hash of a Schedule. Ranks compare it before they run a Schedule together.

#include <cstdint>

#include <heddle/core/linkage.hpp>
#include <heddle/schedule/schedule.hpp>

namespace heddle::inline v0 {

/// Returns a hash of the actions, buffers and queues. Schedules that are equal except for their
/// names have the same hash.
[[nodiscard]] std::uint64_t hash(const Schedule& schedule);

}  // namespace heddle::inline v0

#if HEDDLE_DEFINES_SCHEDULE
#include <heddle/schedule/hash.ipp>
#endif
