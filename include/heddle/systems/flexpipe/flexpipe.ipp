// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// Definitions of flexpipe.hpp.

#include <cstdint>
#include <utility>
#include <vector>

#include <heddle/core/contract.hpp>
#include <heddle/core/linkage.hpp>
#include <heddle/core/text.hpp>
#include <heddle/plan/solver/coordinate.hpp>
#include <heddle/schedule/generator/flexpipe.hpp>
#include <heddle/systems/flexpipe/flexpipe.hpp>

namespace heddle::inline v0::systems {

HEDDLE_INLINE std::vector<plan::Rule> branch_rules(int ranks) {
  expects(ranks >= 1, [&] {
    return ErrorInfo{"heddle::systems::branch_rules", "branches run on at least one rank",
                     text("ranks = ", ranks)};
  });
  std::vector<plan::Rule> rules = plan::standard_rules();
  for (const int half_slots : {1, 2, 4}) {
    for (const int lead : {-2, 2}) {
      const auto shifted = [slots = plan::SlotFirst{half_slots}, lead,
                            ranks](const plan::Candidate& candidate) {
        plan::Urgency urgency = slots(candidate);
        if (static_cast<int>(+candidate.order.stage) / ranks % 2 == 1) urgency[0] -= lead;
        return urgency;
      };
      rules.push_back({text("slot first, every ", half_slots / 2.0, ", branches that run up ",
                            lead > 0 ? "a slot ahead" : "a slot behind"),
                       shifted});
    }
  }
  return rules;
}

HEDDLE_INLINE plan::Coordinated<Seconds> flexpipe(const schedule::FlexpipeOptions& branches,
                                                  const StageCosts& costs, std::int64_t cap,
                                                  std::vector<std::int64_t> activations) {
  return flexpipe<StageCosts>(branches, costs, cap, std::move(activations));
}

}  // namespace heddle::inline v0::systems
