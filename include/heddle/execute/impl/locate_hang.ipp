// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// Definitions of locate_hang.hpp.

#include <optional>
#include <span>
#include <string>
#include <vector>

#include <heddle/core/error.hpp>
#include <heddle/core/linkage.hpp>
#include <heddle/execute/impl/locate_hang.hpp>
#include <heddle/schedule/list_place.hpp>
#include <heddle/schedule/monitor.hpp>
#include <heddle/schedule/schedule.hpp>

namespace heddle::inline v0::impl {

HEDDLE_INLINE std::vector<Finding> hang_of(const Schedule& schedule,
                                           std::span<const std::optional<ListPlace>> told) {
  std::vector<ListPlace> places;
  for (const auto& place : told) places.push_back(place.value_or(ListPlace{.answered = false}));
  return find_hang(schedule, places);
}

HEDDLE_INLINE ErrorInfo with_findings(ErrorInfo complaint, std::span<const Finding> findings) {
  for (const Finding& finding : findings) {
    if (!complaint.why.empty()) complaint.why += "; ";
    complaint.why += to_string(finding);
  }
  return complaint;
}

}  // namespace heddle::inline v0::impl
