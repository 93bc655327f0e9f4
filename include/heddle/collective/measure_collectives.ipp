// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// Definitions of measure_collectives.hpp.

#include <algorithm>
#include <cstddef>
#include <vector>

#include <heddle/collective/measure_collectives.hpp>
#include <heddle/core/linkage.hpp>
#include <heddle/plan/collective_choice.hpp>

namespace heddle::inline v0 {

HEDDLE_FULL_INLINE std::vector<CollectiveChoice> impl::shortlist(
    const std::vector<CollectivePrediction>& all, std::size_t count) {
  std::vector<CollectiveChoice> flat, shared, nested;
  for (const auto& [choice, time] : all) {
    const auto same = std::ranges::count(flat, choice.algorithm, &CollectiveChoice::algorithm);
    if (choice.shared || !choice.levels.empty()) {
      auto& others = choice.shared ? shared : nested;
      if (others.size() < 2) others.push_back(choice);
    } else if (flat.size() < count && same < 2) {
      flat.push_back(choice);
    }
  }
  flat.insert(flat.end(), shared.begin(), shared.end());
  flat.insert(flat.end(), nested.begin(), nested.end());
  return flat;
}

}  // namespace heddle::inline v0
