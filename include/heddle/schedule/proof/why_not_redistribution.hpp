// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// Proves that the Schedule of a redistribution brings every element to the ranks that need it.

#include <string>

#include <heddle/core/linkage.hpp>
#include <heddle/schedule/redistribution/redistribution.hpp>
#include <heddle/schedule/schedule.hpp>

namespace heddle::inline v0::schedule {

/// Returns the first difference between what `schedule` leaves and the target layout of `plan`, or
/// an empty string if there is none. The list runs on symbols: an element of the arrays "from" is
/// the name of a tensor element, from whichever rank it comes. So the result holds for all data.
///
/// Every element of the target must be the tensor element of its place. If the source is Partial,
/// it must be the merge of all parts, each of them once, in ascending order of their coordinates.
/// The arrays "from" and the halo of the arrays "to" must stay as they were. The target is computed
/// from the two layouts. The exchange of `plan` only says what a cast packs, by the number of its
/// piece.
///
/// The time and the memory are linear in the elements that all ranks hold, send and receive.
/// @throws contract_error if the ranks or the arrays of `schedule` are not those of `plan`.
[[nodiscard]] std::string why_not_equivalent(const Schedule& schedule, const Redistribution& plan);

}  // namespace heddle::inline v0::schedule

#if HEDDLE_DEFINES_SCHEDULE
#include <heddle/schedule/proof/why_not_redistribution.ipp>
#endif
