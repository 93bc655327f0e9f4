// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// collective_in_segments(): one collective after the other on pieces of the data, so that what one
/// part of it leaves in the cache the next one finds there. For ranks that share memory.

#include <heddle/core/linkage.hpp>
#include <heddle/schedule/collective/algorithm.hpp>
#include <heddle/schedule/collective/collective.hpp>
#include <heddle/schedule/schedule.hpp>

namespace heddle::inline v0::schedule {

/// As collective(), but all is done with the first chunk of every block before the second is begun.
/// Of collectives in place: all_reduce, reduce_scatter, all_gather, broadcast and reduce.
/// @throws infeasible for the others; else what collective() throws.
[[nodiscard]] Schedule collective_in_segments(Collective collective, Algorithm algorithm,
                                              const CollectiveOptions& options);

}  // namespace heddle::inline v0::schedule

#if HEDDLE_HEADER_ONLY
#include <heddle/schedule/collective/segments.ipp>
#endif
