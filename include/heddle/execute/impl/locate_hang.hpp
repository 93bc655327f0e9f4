// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// locate_hang(): the ranks of a step that hangs tell each other their places, and find where it
/// began.

#include <algorithm>
#include <cstddef>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include <heddle/core/error.hpp>
#include <heddle/core/linkage.hpp>
#include <heddle/core/units.hpp>
#include <heddle/execute/clock.hpp>
#include <heddle/execute/idle.hpp>
#include <heddle/execute/transport.hpp>
#include <heddle/schedule/list_place.hpp>
#include <heddle/schedule/monitor.hpp>
#include <heddle/schedule/schedule.hpp>

namespace heddle::inline v0::impl {

/// Returns where the step hangs, from the places of all ranks. Ranks without a place are silent.
[[nodiscard]] std::vector<Finding> hang_of(const Schedule& schedule,
                                           std::span<const std::optional<ListPlace>> told);

/// Returns the complaint with the findings among its reasons.
[[nodiscard]] ErrorInfo with_findings(ErrorInfo complaint, std::span<const Finding> findings);

/// Tells the other ranks the place of this one, waits `grace` seconds for theirs, and returns where
/// the step hangs. Ranks that do not answer are silent. Returns nothing if the transport has other
/// ranks than the schedule.
template <ReportsPlaces T>
[[nodiscard]] std::vector<Finding> locate_hang(T& transport, const Schedule& schedule,
                                               const ListPlace& mine, Seconds grace) {
  transport.answer(mine);
  if (schedule.ranks() != transport.size()) return {};
  const Seconds since = steady_seconds();
  Waiting waiting(Idle::nap);
  auto told = transport.places();
  while (!std::ranges::all_of(told, [](const auto& place) { return place.has_value(); }) &&
         steady_seconds() - since < grace) {
    waiting();
    told = transport.places();
  }
  return hang_of(schedule, told);
}

}  // namespace heddle::inline v0::impl

#if HEDDLE_HEADER_ONLY
#include <heddle/execute/impl/locate_hang.ipp>
#endif
