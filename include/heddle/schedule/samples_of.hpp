// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// samples_of(): counts the samples that an action computes if ranks divide a microbatch.
/// size_by_samples(): sets the size of a buffer by its samples. Costs and models use them.

#include <cstdint>

#include <heddle/core/index.hpp>
#include <heddle/core/linkage.hpp>
#include <heddle/core/units.hpp>
#include <heddle/schedule/action.hpp>
#include <heddle/schedule/schedule.hpp>

namespace heddle::inline v0 {

namespace schedule {

/// Returns the samples in the parts of `use`, or 0 if its buffer has no granules.
[[nodiscard]] std::int64_t samples_of(const Schedule& schedule, const Use& use);

/// Returns the samples that F, I, W or B `id` computes of its microbatch: those of its first use of
/// a buffer with granules. Returns 0 for other actions, and if it uses no such buffer because the
/// orders had no StageShares.
[[nodiscard]] std::int64_t samples_of(const Schedule& schedule, ActionId id);

}  // namespace schedule

namespace impl {

/// Sets the size of a buffer with granules to `each` bytes for every sample of every microbatch. It
/// is for Schedule::with_sizes(), if a model knows its sizes after weave().
/// @throws contract_error if the buffer has no granules.
void size_by_samples(Buffer& buffer, Bytes each);

}  // namespace impl

}  // namespace heddle::inline v0

#if HEDDLE_DEFINES_SCHEDULE
#include <heddle/schedule/samples_of.ipp>
#endif
