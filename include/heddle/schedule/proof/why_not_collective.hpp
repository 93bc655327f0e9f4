// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// Proves that the Schedule of a collective leaves what the collective says.

#include <string>

#include <heddle/core/linkage.hpp>
#include <heddle/schedule/collective/collective.hpp>
#include <heddle/schedule/schedule.hpp>

namespace heddle::inline v0::schedule {

/// Returns the first difference between what `schedule` leaves and what `collective` says, or an
/// empty string if there is none. The buffers of `schedule` are numbered as those of collective()
/// with these options. Moves, casts and combine actions run on symbols, as in the proof of a step,
/// so that the result holds for all data. The order of a sum is free, and values may be rounded in
/// messages. A barrier has no data, so that there is nothing to compare,
/// and neither is there with `bytes` = 0.
/// @throws contract_error if the ranks, the root or the blocks of `options` are not those of
///         `schedule`.
[[nodiscard]] std::string why_not_equivalent(const Schedule& schedule, Collective collective,
                                             const CollectiveOptions& options);

}  // namespace heddle::inline v0::schedule

#if HEDDLE_DEFINES_SCHEDULE
#include <heddle/schedule/proof/why_not_collective.ipp>
#endif
