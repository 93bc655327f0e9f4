// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// Definitions of priority.hpp.

#include <limits>

#include <heddle/core/contract.hpp>
#include <heddle/core/index.hpp>
#include <heddle/core/linkage.hpp>
#include <heddle/plan/priority.hpp>
#include <heddle/schedule/order/orders.hpp>

namespace heddle::inline v0::plan {

HEDDLE_INLINE Urgency backward_first(const Candidate& candidate) {
  return {candidate.forward(), candidate.turn, -candidate.progress()};
}

HEDDLE_INLINE Urgency forward_first(const Candidate& candidate) {
  return {!candidate.forward(), candidate.turn, -candidate.progress()};
}

HEDDLE_INLINE Urgency microbatch_first(const Candidate& candidate) {
  return {candidate.turn, -candidate.progress(), 0};
}

HEDDLE_INLINE Urgency deepest_first(const Candidate& candidate) {
  return {-candidate.level, candidate.forward(), candidate.turn};
}

HEDDLE_INLINE Urgency SlotFirst::operator()(const Candidate& candidate) const {
  return {half_slots * candidate.turn + 2 * candidate.progress(), candidate.forward(), 0};
}

HEDDLE_INLINE Urgency WeightsLast::operator()(const Candidate& candidate) const {
  expects(rule != nullptr, [] {
    return ErrorInfo{"heddle::plan::WeightsLast", "there is no rule", "WeightsLast::rule is empty"};
  });
  if (candidate.order.kind != Kind::backward_weight) return rule(candidate);
  return {std::numeric_limits<int>::max(), candidate.turn, -candidate.progress()};
}

}  // namespace heddle::inline v0::plan
