// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// collective_in_segments(): performs a collective on one segment of the data after the other. It
/// is for ranks that share memory, because a round finds the data of the previous round in the
/// cache.

#include <heddle/core/linkage.hpp>
#include <heddle/schedule/collective/algorithm.hpp>
#include <heddle/schedule/collective/collective.hpp>
#include <heddle/schedule/schedule.hpp>

namespace heddle::inline v0::schedule {

namespace impl {

/// Returns the Schedule of collective(), reordered such that all rounds of the first chunk of every
/// block come before those of the second chunk. It needs a collective in place: all_reduce,
/// reduce_scatter, all_gather, broadcast or reduce.
/// @throws infeasible for other collectives.
/// @throws contract_error and infeasible as collective() does.
[[nodiscard]] Schedule collective_in_segments(Collective collective, Algorithm algorithm,
                                              const CollectiveOptions& options);

}  // namespace impl

}  // namespace heddle::inline v0::schedule

#if HEDDLE_DEFINES_SCHEDULE_COLLECTIVE
#include <heddle/schedule/collective/segments.ipp>
#endif
