// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// Definitions of measure_collectives.hpp.

#include <algorithm>
#include <cstddef>
#include <string>
#include <utility>
#include <vector>

#include <heddle/collective/measure_collectives.hpp>
#include <heddle/comm/agreement.hpp>
#include <heddle/comm/measure_links.hpp>
#include <heddle/core/linkage.hpp>
#include <heddle/core/text.hpp>
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

HEDDLE_FULL_INLINE CollectiveCall impl::call_to_measure(const char* where,
                                                        const CollectiveMeasureOptions& options) {
  const LinkOptions& links = options.links;
  std::string names = printable(links.name);
  for (const std::string& name : links.names) names += ", " + printable(name);
  return {where,
          {{"collectives", listed(options.collectives)},
           {"sizes", listed(options.sizes)},
           {"candidates", text(options.candidates)},
           {"budget", text(options.budget)},
           {"budget of a link", text(links.budget)},
           {"piece", text(links.piece)},
           {"largest burst", text(links.largest)},
           {"bursts", text(links.bursts)},
           {"names of devices", std::move(names)}}};
}

}  // namespace heddle::inline v0
