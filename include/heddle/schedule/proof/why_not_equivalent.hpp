// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// Proves that a Schedule computes what the serial step computes.

#include <string>

#include <heddle/core/linkage.hpp>
#include <heddle/schedule/proof/serial_step.hpp>
#include <heddle/schedule/schedule.hpp>

namespace heddle::inline v0::schedule {

/// Returns the first difference between a step of `schedule` and `step`, or an empty string if
/// there is none. The list runs on symbols instead of numbers: each part holds the name of a value,
/// such as the output of stage 1 for microbatch 3. Moves copy names and combine actions add them.
/// So the result holds for all models and all data.
///
/// Every forward and backward pass must read the values that the serial step gives it, and weights
/// of the version that `step` states, unless no update depends on its results. Every update must
/// apply each gradient once, and all ranks that hold parameters of a stage must have the same at
/// the end. The order of a sum is free.
///
/// The uses of passes and updates must be in the order in which weave() states them. The time is
/// linear in the actions and their uses.
[[nodiscard]] std::string why_not_equivalent(const Schedule& schedule, const SerialStep& step);

}  // namespace heddle::inline v0::schedule

#if HEDDLE_DEFINES_SCHEDULE
#include <heddle/schedule/proof/why_not_equivalent.ipp>
#endif
