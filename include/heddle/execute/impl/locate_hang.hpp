// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// locate_hang(): the ranks of a step that hangs tell each other their places, and find where it
/// began.

#include <span>
#include <vector>

#include <heddle/core/error.hpp>
#include <heddle/core/linkage.hpp>
#include <heddle/core/units.hpp>
#include <heddle/execute/transport_ref.hpp>
#include <heddle/schedule/list_place.hpp>
#include <heddle/schedule/monitor.hpp>
#include <heddle/schedule/schedule.hpp>

namespace heddle::inline v0::impl {

/// Returns the complaint with the findings among its reasons.
[[nodiscard]] ErrorInfo with_findings(ErrorInfo complaint, std::span<const Finding> findings);

/// Tells the other ranks the place of this one, waits `grace` seconds for theirs, and returns where
/// the step hangs. Ranks that do not answer are silent. Returns nothing if the transport has other
/// ranks than the schedule.
[[nodiscard]] std::vector<Finding> locate_hang(const TransportRef& transport,
                                               const Schedule& schedule, const ListPlace& mine,
                                               Seconds grace);

}  // namespace heddle::inline v0::impl

#if HEDDLE_DEFINES_EXECUTE
#include <heddle/execute/impl/locate_hang.ipp>
#endif
