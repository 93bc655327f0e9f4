// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// Definitions of locate_hang.hpp.

#include <algorithm>
#include <optional>
#include <span>
#include <vector>

#include <heddle/core/error.hpp>
#include <heddle/core/linkage.hpp>
#include <heddle/core/units.hpp>
#include <heddle/execute/clock.hpp>
#include <heddle/execute/idle.hpp>
#include <heddle/execute/impl/locate_hang.hpp>
#include <heddle/execute/transport_ref.hpp>
#include <heddle/schedule/list_place.hpp>
#include <heddle/schedule/monitor.hpp>
#include <heddle/schedule/schedule.hpp>

namespace heddle::inline v0::impl {

HEDDLE_INLINE std::vector<Finding> locate_hang(const TransportRef& transport,
                                               const Schedule& schedule, const ListPlace& mine,
                                               Seconds grace) {
  transport.answer(mine);
  if (schedule.ranks() != transport.size()) return {};
  const Seconds since = steady_seconds();
  Waiting waiting(Idle::nap);
  auto told = transport.places();
  const auto silent = [](const std::optional<ListPlace>& place) { return !place; };
  while (std::any_of(told.begin(), told.end(), silent) && steady_seconds() - since < grace) {
    waiting();
    told = transport.places();
  }
  std::vector<ListPlace> places;
  for (const auto& place : told) places.push_back(place.value_or(ListPlace{.answered = false}));
  return schedule::find_hang(schedule, places);
}

HEDDLE_INLINE ErrorInfo with_findings(ErrorInfo complaint, std::span<const Finding> findings) {
  for (const Finding& finding : findings) {
    if (!complaint.why.empty()) complaint.why += "; ";
    complaint.why += to_string(finding);
  }
  return complaint;
}

}  // namespace heddle::inline v0::impl
