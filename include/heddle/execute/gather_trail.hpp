// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// gather_trail(): the trail of all ranks from that of each.

#include <heddle/core/linkage.hpp>
#include <heddle/core/units.hpp>
#include <heddle/execute/execute_options.hpp>
#include <heddle/execute/trail.hpp>
#include <heddle/execute/transport_ref.hpp>

namespace heddle::inline v0::impl {

/// Returns the trail of all ranks, on each rank. All ranks must call it with their own trail. The
/// workers of a rank follow those of the ranks before it. `offset` is this rank's clock_offset(),
/// so that all times are rank 0's steady_seconds().
[[nodiscard]] Trail gather_trail(const TransportRef& transport, const Trail& mine, Seconds offset,
                                 const ExecuteOptions& options = {});

}  // namespace heddle::inline v0::impl

#if HEDDLE_DEFINES_EXECUTE
#include <heddle/execute/gather_trail.ipp>
#endif
